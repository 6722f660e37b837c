"""From what the phones, the host and the robot saw to the metrics of the cases."""

from collections import Counter

from fakes.applog import covers
from fakes.recorder import percentile

__all__ = ["Evidence", "Measured", "Observation", "Refused"]

LINKED = ("LINKED", "LIVE", "STALE")
GRACE_S = 1.5  # a value published this shortly before the end may still be on its way
FRESH_S = 0.3


class Observation:
    """The host as seen from outside: states by phone, issues, names, over time."""

    def __init__(self):
        self.states = {}  # phone -> [(time, state)]
        self.names_by_port = {}
        self.issues_seen = set()
        self.issues = []
        self.aoa_versions = {}
        self.frozen = False

    def state(self, phone, state, now):
        if self.frozen:
            return
        history = self.states.setdefault(phone, [])
        if not history or history[-1][1] != state:
            history.append((now, state))

    def name(self, port, name):
        if name:
            names = self.names_by_port.setdefault(port, [])
            if name not in names:
                names.append(name)

    def open_issues(self, codes):
        if self.frozen:
            return
        self.issues = sorted(set(codes))
        self.issues_seen |= set(codes)

    def current(self, phone):
        history = self.states.get(phone)
        return history[-1][1] if history else "ABSENT"


class Refused:
    """The configuration of the case is refused: nothing ran."""

    def __init__(self, error):
        self.problems = []
        self.relaxation = lambda name: 0.0
        self._error = error

    def __call__(self, name, phone):
        return self._error if name == "config_error" else 0


class Measured:
    """Metrics that are simply known."""

    def __init__(self, values):
        self.problems = []
        self.relaxation = lambda name: 0.0
        self._values = values

    def __call__(self, name, phone):
        return self._values[name]


class Evidence:
    """Metrics of one run. `device` is per phone what the emulated device counted; `host` what only the host knows."""

    def __init__(self, *, device, seen, notes, puts, published, begin, end, host, problems=()):
        self.problems = list(problems)
        self.relaxation = lambda name: 0.0
        self._device = device
        self._seen = seen
        self._notes = notes  # [(time, event, phone, arguments)]
        self._puts = puts  # {topic: [(time, value)]}
        self._published = published  # {topic: [(sequence, time)]}
        self._begin = begin
        self._end = end
        self._host = {"config_error": None, **host}

    def __call__(self, name, phone):
        """The metric of one phone, or of all phones together."""
        if name in self._host:
            return self._host[name]
        special = getattr(self, f"_{name}", None)
        phones = [phone] if phone else list(self._device)
        if special is not None:
            return special(phones)
        values = [self._device[each][name] for each in phones]
        return combined(values)

    # events

    def _events(self, phone, name, **wanted):
        return [
            entry["t"]
            for entry in self._device[phone]["events"]
            if entry["event"] == name and all(entry.get(key) == value for key, value in wanted.items())
        ]

    def _note_times(self, name, phone=None):
        return [
            time
            for time, event, who, _ in self._notes
            if event == name and (phone is None or who in (phone, None, "*"))
        ]

    def _claim_times(self, phone):
        return self._events(phone, "claim")

    def _lives(self, phone):
        return [time for time, state in self._seen.states.get(phone, []) if state == "LIVE"]

    def _delay(self, phones, causes, effects):
        """The longest wait from a cause to the next effect; None if one never came."""
        waits = []
        for phone in phones:
            times = effects(phone)
            for cause in causes(phone):
                after = [time for time in times if time >= cause]
                if not after:
                    return None
                waits.append(after[0] - cause)
        return max(waits, default=None)

    def _first(self, times):
        return times[:1]

    def _link_after_plug_s(self, phones):
        return self._delay(phones, lambda p: self._first(self._events(p, "plug")), self._claim_times)

    def _live_after_plug_s(self, phones):
        return self._delay(phones, lambda p: self._first(self._events(p, "plug")), self._lives)

    def _link_after_replug_s(self, phones):
        return self._delay(phones, lambda p: self._events(p, "plug")[1:], self._claim_times)

    def _link_after_arrival_s(self, phones):
        return self._delay(
            phones, lambda p: self._first(self._events(p, "attach", mode="accessory")), self._claim_times
        )

    def _link_after_host_start_s(self, phones):
        return self._delay(phones, lambda p: self._note_times("host_start")[-1:], self._claim_times)

    def _live_after_host_start_s(self, phones):
        return self._delay(phones, lambda p: self._note_times("host_start")[-1:], self._lives)

    def _link_after_release_s(self, phones):
        released = [
            time + arguments["seconds"] for time, event, _, arguments in self._notes if event == "hold_interface"
        ]
        return self._delay(phones, lambda p: released, self._claim_times)

    def _unplug_noticed_s(self, phones):
        def noticed(phone):
            return [time for time, state in self._seen.states.get(phone, []) if state not in LINKED]

        return self._delay(phones, lambda p: self._events(p, "unplug"), noticed)

    def _stale_after_mute_s(self, phones):
        def stale(phone):
            return [time for time, state in self._seen.states.get(phone, []) if state == "STALE"]

        return self._delay(phones, lambda p: self._note_times("app_mute", p), stale)

    def _fresh_after_resume_s(self, phones):
        def fresh(phone):
            return [time for time, age in self._device[phone]["ages"] if age <= FRESH_S]

        return self._delay(phones, lambda p: self._note_times("app_read", p), fresh)

    def _start_times_s(self, phones):
        starts = sorted(time for phone in phones for time in self._device[phone]["start_times"])
        return [time - starts[0] for time in starts]

    # status

    def _state(self, phones):
        states = [self._seen.current(phone) for phone in phones]
        return states[0] if len(set(states)) == 1 else states

    def _issue(self, phones):
        return self._seen.issues

    def _issue_seen(self, phones):
        return sorted(self._seen.issues_seen)

    def _status_since_s(self, phones):
        return max(self._end - self._seen.states[phone][-1][0] for phone in phones)

    def _names(self, phones):
        return len({name for names in self._seen.names_by_port.values() for name in names})

    def _identity_swaps(self, phones):
        return sum(len(names) - 1 for names in self._seen.names_by_port.values())

    def _aoa_version(self, phones):
        return self._seen.aoa_versions.get(phones[0])

    # links

    def _links_ended(self, phones):
        """Ends of a link that the script's host items did not order."""
        quiet, since = [], None
        for time, event, _, _ in self._notes:
            if event in ("host_stop", "host_kill"):
                since = time
            elif event == "host_start" and since is not None:
                quiet.append((since, time))
                since = None
        if since is not None:
            quiet.append((since, float("inf")))
        ends = [time for phone in phones for time in self._events(phone, "link end")]
        return sum(time < self._end and not any(a <= time <= b for a, b in quiet) for time in ends)

    def _usb_calls_per_s(self, phones):
        calls = sum(self._device[phone]["usb_calls"] for phone in phones)
        return calls / max(self._end - self._begin, 1.0)

    # lines

    def _lines_lost(self, phones):
        return sum(self._inbound(phone)["lost"] + self._outbound_lost(phone) for phone in phones)

    def _lines_corrupt(self, phones):
        return sum(self._device[phone]["lines_corrupt"] + self._inbound(phone)["corrupt"] for phone in phones)

    def _lines_duplicated(self, phones):
        return sum(self._device[phone]["lines_duplicated"] + self._inbound(phone)["duplicated"] for phone in phones)

    def _inbound(self, phone):
        """Puts of the phone against what the robot got."""
        sent = self._device[phone]["sent"]
        got = self._puts.get(f"/in/{phone}", [])
        texts = {entry[0] for entry in sent.values()}
        counts = Counter(value for _, value in got)
        return {
            "lost": sum(text not in counts for text in texts),
            "corrupt": sum(count for value, count in counts.items() if value not in texts),
            "duplicated": sum(count - 1 for value, count in counts.items() if value in texts),
        }

    def _outbound_lost(self, phone):
        """Topics whose last value never came although there was time; what a newer value replaced is not lost."""
        newest, keys = self._device[phone]["newest"], self._device[phone]["keys"]
        lost = 0
        for topic, entries in self._published.items():
            if not any(covers(key, topic) for key in keys):
                continue
            sequence, time = entries[-1]
            if time < self._end - GRACE_S:
                received = newest.get(topic)
                lost += received is not None and received[0] < sequence
                lost += received is None and self._seen.current(phone) in ("LIVE", "STALE")
        return lost

    def _oversize_lines(self, phones):
        return sum(self._device[phone]["error_lines"].get("too-large", 0) for phone in phones)

    def _backlog_puts_refused(self, phones):
        return sum(self._device[phone]["error_lines"].get("not-connected", 0) for phone in phones)

    def _stale_puts_published(self, phones):
        """Puts that waited on the phone before the host came and reached the robot all the same."""
        stale = [entry for phone in phones for entry in self._device[phone]["stale_puts"]]
        return sum([topic, value] in stale for topic, entries in self._puts.items() for _, value in entries)

    # latency

    def _age_p99_ms(self, phones):
        return _ms(percentile([age for phone in phones for _, age in self._device[phone]["ages"]], 0.99))

    def _out_latency_ms(self, phones):
        return self._age_p99_ms(phones)

    def _age_growth_ms(self, phones):
        """Mean age in the last quarter of the (last) minute minus that in the first."""
        ages = sorted(entry for phone in phones for entry in self._device[phone]["ages"])
        if not ages:
            return None
        last = ages[-1][0]
        first = max(ages[0][0], last - 60.0)
        quarter = (last - first) / 4
        early = [age for time, age in ages if first <= time <= first + quarter]
        late = [age for time, age in ages if time >= last - quarter]
        return (sum(late) / len(late) - sum(early) / len(early)) * 1000

    def _in_latency_ms(self, phones):
        delays = []
        for phone in phones:
            sent = {entry[0]: entry[1] for entry in self._device[phone]["sent"].values()}
            got = self._puts.get(f"/in/{phone}", [])
            delays += [time - sent[value] for time, value in got if sent.get(value) is not None]
        return _ms(percentile(delays, 0.99))


def combined(values):
    """One value for several phones: the sum of counts, the worst of times, else what all agree on."""
    known = [value for value in values if value is not None]
    if len(known) <= 1:
        return known[0] if known else None
    if all(isinstance(value, bool) for value in known):
        return all(known)
    if all(isinstance(value, int) for value in known):
        return sum(known)
    if all(isinstance(value, float) for value in known):
        return max(known)
    return known[0]


def _ms(seconds):
    return None if seconds is None else seconds * 1000
