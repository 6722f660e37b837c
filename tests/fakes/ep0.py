"""Endpoint 0 of the emulated phone: standard requests, and Android's requests 51 to 53."""

from fakes.transfers import PENDING, PROTOCOL_ERROR, SHUTDOWN, STALL

__all__ = ["ControlRequests"]

VENDOR_IN, VENDOR_OUT = 0xC0, 0x40
GET_PROTOCOL, SEND_STRING, START = 51, 52, 53
MAX_STRING = 256
START_RESULTS = {"IO": PROTOCOL_ERROR, "PIPE": STALL, "NO_DEVICE": SHUTDOWN, "TIMEOUT": PENDING}


class ControlRequests:
    """The control half of the phone (a mix-in: `profile`, `recorder`, `clock`, `view`, `mode` are the phone's)."""

    def __init__(self):
        self._strings = {}
        self._attached_at = 0.0
        self._control_pending = []
        self._unplug_step = None  # (step, byte or None)
        self._string_count = 0
        self.control_hung = False

    def reset_handshake(self):
        self._strings = {}
        self._string_count = 0
        self._attached_at = self.clock.now()

    def shut_control(self):
        while self._control_pending:
            self._control_pending.pop().finish(SHUTDOWN)

    def unplug_at(self, step, byte=None):
        """Unplugs during that call (`send_string:3`), after `byte` bytes of a bulk transfer."""
        if step in ("read", "write"):
            self.unplug_in_transfer(step, byte or 0)
        else:
            self._unplug_step = step

    def reached(self, step):
        """True if the script cuts the phone off in this step; it is unplugged then."""
        if self._unplug_step == step:
            self._unplug_step = None
            self.unplug()
            return True
        return False

    def submit_control(self, transfer, setup):
        """Runs a control transfer with the profile's delays; `transfer.buffer` receives IN data."""
        request_type, request, value, index, length = setup
        self._control_pending.append(transfer)
        profile = self.profile
        dead_left = self._attached_at + profile.ep0_dead_ms / 1000 - self.clock.now()
        if self.control_hung or dead_left > 0:
            self._log_only(request_type, request, index, transfer.data)
            return

        def answer():
            if transfer.done or transfer not in self._control_pending:
                return
            result = self.control(request_type, request, value, index, length, data=bytes(transfer.data))
            if result is PENDING or transfer not in self._control_pending:
                return
            self._control_pending.remove(transfer)
            if isinstance(result, int):
                transfer.finish(result)
                return
            if request_type & 0x80:
                transfer.buffer += result
                transfer.moved = len(result)
            else:
                transfer.moved = 0 if profile.out_count == "zero" else len(transfer.data)
            transfer.finish(0)

        if profile.ep0_delay_ms:
            self._later(profile.ep0_delay_ms / 1000, answer)
        else:
            answer()

    def cancel_control(self, transfer):
        if transfer in self._control_pending:
            self._control_pending.remove(transfer)
        transfer.finish(-2)

    def _log_only(self, request_type, request, index, data):
        if request_type & 0x60 == 0x40:
            self.recorder.vendor_request(request, index, data)

    def control(self, request_type, request, value, index, length, *, data=b""):
        """The answer: bytes (empty for OUT), a negative status such as STALL, or PENDING (silence)."""
        if request_type & 0x60 == 0x40:
            result = self._vendor(request_type, request, (value, index, length), data)
        else:
            result = self._standard(request_type, request, value, index, length)
        if result == STALL:
            self.recorder.counts["stalls"] += 1
        return result

    # Android

    def _vendor(self, request_type, request, fields, data):
        value, index, length = fields
        self.recorder.vendor_request(request, index, data)
        reenumerates = self.mode == "accessory" and self.profile.on_vendor_request == "reenumerate"
        if reenumerates and request in (GET_PROTOCOL, SEND_STRING, START):
            self.leave()
            return SHUTDOWN
        if (request_type, request) == (VENDOR_IN, GET_PROTOCOL):
            return self._get_protocol(value, index, length)
        if (request_type, request) == (VENDOR_OUT, SEND_STRING):
            return self._send_string(value, index, data)
        if (request_type, request) == (VENDOR_OUT, START):
            return self._start(value, index, length)
        return STALL

    def _get_protocol(self, value, index, length):
        if self.reached("get_protocol"):
            return SHUTDOWN
        strict = self.profile.rules == "functionfs" and (length != 2 or value or index)
        if self.profile.protocol is None or self.locked or strict:
            return STALL
        self._strings.clear()
        return bytes.fromhex(self.profile.protocol)[:length]

    def _send_string(self, value, index, data):
        if self.reached(f"send_string:{index}"):
            return SHUTDOWN
        if self.profile.rules == "functionfs" and (value or index > 5 or not 1 <= len(data) <= MAX_STRING):
            return STALL
        if index > 5:
            return STALL
        self._strings[index] = data.rstrip(b"\0")
        return b""

    def _start(self, value, index, length):
        if self.reached("start"):
            return SHUTDOWN
        if self.profile.rules == "functionfs" and (value or index or length):
            return STALL
        if self.mode == "native" and all(self._strings.get(number) for number in self.profile.needs_strings):
            self.start_switch()
        if self.profile.start_result != "ok":
            return START_RESULTS[self.profile.start_result]
        return b""

    # chapter 9

    def _standard(self, request_type, request, value, index, length):
        answers = {
            (0x80, 6): lambda: self._descriptor(value >> 8, value & 0xFF, length),
            (0x80, 8): lambda: bytes([self.configured]),
            (0x80, 0): lambda: bytes(2),
            (0x81, 0): lambda: bytes(2),
            (0x82, 0): lambda: bytes(2),
            (0x00, 9): lambda: self.set_configuration(value) or b"",
            (0x02, 1): lambda: self.clear_halt(index) or b"",
            (0x01, 11): lambda: b"",
            (0x81, 10): lambda: bytes(1),
        }
        answer = answers.get((request_type, request))
        return STALL if answer is None else answer()

    def _descriptor(self, kind, number, length):
        if kind == 1:
            return self.view.device[:length]
        if kind == 2 and number == 0:
            return self.view.configuration[:length]
        if kind == 3:
            self.recorder.counts["string_descriptor_requests"] += 1
            if number == 0:
                return bytes((4, 3, 9, 4))[:length]
            text = self.view.strings.get(number)
            if text is None:
                return STALL
            body = text.encode("utf-16-le")
            return (bytes((2 + len(body), 3)) + body)[:length]
        return STALL
