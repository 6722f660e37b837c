"""What the emulated device saw: every request and transfer, as the metrics of the cases."""

import math
from collections import Counter

__all__ = ["Recorder", "percentile"]

COUNTERS = (
    *("get_protocol", "send_string", "start", "vendor_requests", "hid_requests", "audio_requests", "stalls"),
    *("empty_strings_sent", "string_descriptor_requests", "set_configuration", "reset", "clear_halt", "claims"),
    *("claims_native", "zlp_out", "out_multiple_of_mps", "overflow", "bytes_to_other_interfaces"),
    *("usb_calls", "calls_after_no_device", "calls_after_close"),
)


def percentile(values, share):
    """The value below which `share` of them lie; None without values."""
    if not values:
        return None
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, math.ceil(share * len(ordered)) - 1)]


class Recorder:
    """Counts for one phone over all its attachments."""

    def __init__(self, clock):
        self._clock = clock
        self.counts = Counter(dict.fromkeys(COUNTERS, 0))
        self.string_indices = []
        self.string_lengths = []
        self.starts = []
        self.in_read_bytes = set()
        self.out_max_bytes = 0
        self.first_out_bytes = []
        self.events = []
        self.calls_by_thread = Counter()
        self._awaiting_first_byte = False
        self._last_out = None
        self.idle_gap_s = 0.0
        self.linked = False

    def event(self, name, **data):
        self.events.append({"t": self._clock.now(), "event": name, **data})

    def times(self, name):
        return [entry["t"] for entry in self.events if entry["event"] == name]

    def vendor_request(self, request, index, data):
        self.counts["vendor_requests"] += 51 <= request <= 58
        self.counts["hid_requests"] += 54 <= request <= 57
        self.counts["audio_requests"] += request == 58
        if request == 51:
            self.counts["get_protocol"] += 1
            self.string_indices = []
        elif request == 52:
            self.counts["send_string"] += 1
            self.string_indices.append(index)
            self.string_lengths.append(len(data))
            self.counts["empty_strings_sent"] += len(data.rstrip(b"\0")) == 0
        elif request == 53:
            self.counts["start"] += 1
            self.starts.append(self._clock.now())
            self.event("start")

    def link_opened(self):
        """The accessory interface was claimed."""
        self._awaiting_first_byte = True
        self._last_out = self._clock.now()
        self.linked = True

    def link_closed(self):
        self.linked = False
        self._last_out = None

    def out_submitted(self, length, zero_packet, packet_size):
        self.counts["zlp_out"] += zero_packet or length == 0
        self.counts["out_multiple_of_mps"] += length > 0 and length % packet_size == 0
        self.out_max_bytes = max(self.out_max_bytes, length)
        now = self._clock.now()
        if self._last_out is not None:
            self.idle_gap_s = max(self.idle_gap_s, now - self._last_out)
        self._last_out = now

    def out_accepted(self, data):
        if self._awaiting_first_byte and data:
            self._awaiting_first_byte = False
            self.first_out_bytes.append(f"{data[0]:02x}")

    def metrics(self):
        gaps = [later - earlier for earlier, later in zip(self.starts, self.starts[1:], strict=False)]
        first = sorted(set(self.first_out_bytes))
        return {
            **self.counts,
            "string_indices": list(self.string_indices),
            "string_min_bytes": min(self.string_lengths, default=None),
            "string_max_bytes": max(self.string_lengths, default=None),
            "in_read_bytes": sorted(self.in_read_bytes),
            "out_max_bytes": self.out_max_bytes,
            "first_out_byte": first[0] if len(first) == 1 else first,
            "min_start_gap_s": min(gaps, default=None),
            "start_times": list(self.starts),
            "idle_gap_s": self.idle_gap_s,
        }
