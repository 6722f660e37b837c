"""A driver station source in virtual time, the topics that result from it, and the packets that go in."""

from aoabridge.sources.frc import FrcSettings, FrcSource
from aoabridge.values import Withdrawal

SENDER = ("127.0.0.1", 5000)
FMS, DS, CMD, RIO = "fms2ds-udp:1121", "ds2fms-udp:1160", "ds2rio-udp:1110", "rio2ds-udp:1150"
FMS_TCP, DS_TCP, RIO_TCP = "fms2ds-tcp:1751", "ds2fms-tcp:1750", "rio2ds-tcp:1740"


class Bench:
    """A source and the NT topics that result from it."""

    def __init__(self, *listen, **options):
        self.source = FrcSource(FrcSettings(listen=listen, **options), "bench")
        self.topics, self.withdrawn, self.log = {}, [], []
        self.schemas = {}

    def take(self):
        for item in self.source.take_publications():
            name = item.topic.removeprefix("/FRC/bench/")
            if isinstance(item, Withdrawal):
                self.withdrawn.append(name)
                del self.topics[name]
            elif name.startswith("/.schema/"):
                assert name not in self.schemas
                self.schemas[name] = item
            else:
                self.topics[name] = item.value
                self.log.append(item)

    def datagram(self, key, data, now, sender=SENDER):
        self.source.on_datagram(key, data, sender, now)
        self.take()

    def tick(self, now):
        self.source.on_tick(now)
        self.take()

    def stream(self, key, number, data, now):
        self.source.on_stream(key, number, bytes.fromhex(data), now)
        self.take()

    def history(self, name):
        return [item.value for item in self.log if item.topic == f"/FRC/bench/{name}"]


def cmd(sequence, control=0, tail=b""):
    return sequence.to_bytes(2) + bytes([1, control, 0x10, 0]) + tail


def fms(sequence=0, control=0, station=0, tail=b""):
    return sequence.to_bytes(2) + bytes([0, control, 0, station, *bytes(16)]) + tail


def ds(team, sequence=0):
    return sequence.to_bytes(2) + b"\x00\x20" + team.to_bytes(2) + b"\x0c\x80"
