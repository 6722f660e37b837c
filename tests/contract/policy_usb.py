"""USB as the policy rig's host calls it: the emulated phones below, UsbError above, coroutines in place of threads."""

from aoabridge.errors import UsbError
from aoabridge.phone.aoa import CONTROL_TIMEOUT_MS, Candidate, accessory_candidates, parse_protocol
from contract.tasks import Call

__all__ = ["KINDS", "PolicyUsb"]

KINDS = {-32: "PIPE", -75: "OVERFLOW", -108: "NO_DEVICE", -71: "IO", -2: "TIMEOUT"}
CLAIM_KINDS = {-16: "BUSY", -19: "NO_DEVICE", -2: "NOT_FOUND"}


class PolicyUsb:
    """The calls of one host process; ``holder`` is whom the phone sees as the owner of a claim."""

    def __init__(self, board, holder):
        self.board = board
        self.holder = holder

    @staticmethod
    def error(kind, step, device):
        """What the adapter raises."""
        return UsbError(f"{step}: {kind}", errno=None, kind=kind, step=step, port=device.port)

    def _find(self, device, step="open"):
        """The phone behind a snapshot; UsbError if it is gone or may not be opened."""
        for phone in self.board.phones.values():
            if phone.mode is not None and self.board.address(phone) == device.address:
                phone.reached("open")
                self.inject("open", step, device)
                if phone.mode is not None:
                    return phone
        raise self.error("NOT_FOUND", step, device)

    def inject(self, op, step, device):
        """The error that the case wants here, if any."""
        entry = self.board.injector.take(op)
        if entry is not None:
            raise self.error(entry["error"], step, device)

    def handshake(self, device, requests):
        """The version that the phone answers, 0 if it refuses; a generator for Task."""
        phone = self._find(device)
        version = 0
        for request in requests:
            try:
                reply = yield from self._control(phone, request, device)
            except UsbError:
                if request.step != "start":
                    raise
                continue
            if request.step == "get_protocol":
                version = parse_protocol(reply)
                if version == 0:
                    return 0
        return version

    def _control(self, phone, request, device):
        setup = (
            request.request_type,
            request.request,
            request.value,
            request.index,
            request.length or len(request.data),
        )
        entry = self.board.injector.take(request.step.split(":")[0])
        if entry is not None:
            phone.recorder.vendor_request(request.request, request.index, request.data)
            raise self.error(entry["error"], request.step, device)
        transfer = yield Call(
            lambda transfer: phone.submit_control(transfer, setup),
            phone.cancel_control,
            CONTROL_TIMEOUT_MS / 1000,
            data=request.data,
            length=setup[4],
        )
        if transfer.status:
            raise self.error(KINDS[transfer.status], request.step, device)
        return bytes(transfer.buffer)

    def claimed(self, action):
        """The phone, the chosen interface (None = there is none) and how many there are."""
        phone = self._find(action.device)
        candidates = accessory_candidates(
            Candidate(
                number=item.number,
                klass=item.triple[0],
                subclass=item.triple[1],
                protocol=item.triple[2],
                endpoints=tuple((end.address, end.kind, end.packet_size) for end in item.endpoints),
                text=item.text,
            )
            for item in phone.view.interfaces
        )
        if not candidates:
            return phone, None, 0
        if action.device.configuration == 0:
            self.inject("set_configuration", "set_configuration", action.device)
            phone.set_configuration(1)
        chosen = candidates[action.turn % len(candidates)]
        phone.reached("claim")
        self.inject("claim", "claim", action.device)
        result = phone.claim(chosen.number, self.holder)
        if result < 0:
            raise self.error(CLAIM_KINDS[result], "claim", action.device)
        return phone, chosen, len(candidates)

    def bulk(self, phone, endpoint, timeout_ms, **fields):
        """One transfer on an endpoint; a generator for Task."""
        op = "read" if endpoint & 0x80 else "write"
        pipe = phone.pipe(endpoint)
        entry = self.board.injector.take(op, has_data=op == "write" or (pipe is not None and not pipe.idle))
        call = Call(phone.submit, phone.cancel, timeout_ms / 1000, endpoint=endpoint, **fields)
        if entry is None:
            return (yield call)
        transfer = call.transfer
        if op == "read" and entry.get("moved") and pipe is not None:
            transfer.buffer += pipe.take(entry["moved"])
        yield 0.001
        transfer.finish({"PIPE": -32, "OVERFLOW": -75, "NO_DEVICE": -108, "TIMEOUT": -2}.get(entry["error"], -71))
        return transfer
