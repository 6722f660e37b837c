import io
import json
import socket
from pathlib import Path

import dpkt
import pytest

from aoabridge.codecs.protocols import PROTOCOLS
from aoabridge.errors import DecodeError
from aoabridge.sources.frc import FrcSettings, FrcSource, Replay

VECTORS = json.loads((Path(__file__).parents[3] / "vectors" / "frc_ds_vectors.json").read_text())


def ip(payload, protocol):
    packet = dpkt.ip.IP(src=socket.inet_aton("10.0.0.1"), dst=socket.inet_aton("10.0.0.2"), p=protocol, data=payload)
    return bytes(dpkt.ethernet.Ethernet(type=0x0800, data=packet))


def capture_of(items):
    """Items (seconds, protocol, octets) as a file."""
    target, sequence = io.BytesIO(), {}
    writer = dpkt.pcap.Writer(target)
    for seconds, protocol, data in items:
        rule = PROTOCOLS[protocol].capture
        sport, dport = (rule.ports[0], 5555) if rule.side == "src" else (5555, rule.ports[0])
        if rule.transport == "udp":
            frame = ip(dpkt.udp.UDP(sport=sport, dport=dport, data=data, ulen=8 + len(data)), 17)
        else:
            seq = sequence.setdefault(protocol, 100)
            frame = ip(dpkt.tcp.TCP(sport=sport, dport=dport, seq=seq, flags=0x10, data=data), 6)
            sequence[protocol] += len(data)
        writer.writepkt(frame, ts=1000 + seconds)
    return target.getvalue()


def final(source):
    topics = {}
    for item in source.take_publications():
        topics[item.topic] = getattr(item, "value", None)
    return {name: value for name, value in topics.items() if "/Link/" not in name}


def test_a_replay_gives_the_topics_of_the_live_run():
    vectors = [vector for vector in VECTORS if vector["valid"] and vector["transport"] == "udp"]
    vectors += [vector for vector in VECTORS if vector["transport"] == "tcp" and vector["expect"] == "ok"]
    items = [(index / 100, vector["protocol"], bytes.fromhex(vector["hex"])) for index, vector in enumerate(vectors)]
    keys = {name: f"{name}:{row.capture.ports[0]}" for name, row in PROTOCOLS.items() if row.module == "frc"}
    live = FrcSource(FrcSettings(listen=tuple(keys.values()), max_rate=5000, publish_hz=0), "bench")
    for seconds, protocol, data in items:
        if protocol.endswith("-udp"):
            live.on_datagram(keys[protocol], data, ("127.0.0.1", 5555), 50 + seconds)
        else:
            live.on_stream(keys[protocol], 1, data, 50 + seconds)
    played = FrcSource(FrcSettings(replay="x", max_rate=5000, publish_hz=0), "bench")
    assert played.endpoints() == ()
    replay = Replay(capture_of(items), played)
    now = 50.0
    while (due := replay.next_deadline(now)) is not None:
        now = due
        replay.step(now)
    assert now == pytest.approx(50 + items[-1][0])
    assert replay.finished
    assert final(played) == final(live)
    assert {name: value for name, value in played.counters.items() if "Truncated" not in name} == {
        name: value for name, value in live.counters.items() if "Truncated" not in name
    }


def test_speed_and_loop():
    items = [(index, "ds2rio-udp", index.to_bytes(2) + bytes(4)) for index in range(3)]
    source = FrcSource(FrcSettings(replay="x"), "bench")
    replay = Replay(capture_of(items), source, speed=2.0)
    replay.step(10.0)
    assert replay.next_deadline(10.0) == 10.5
    replay.step(10.49)
    assert source.counters["ds2rio-udp/Received"] == 1
    replay.step(11.0)
    assert (source.counters["ds2rio-udp/Received"], replay.finished) == (3, True)
    endless = Replay(capture_of(items), source, loop=True)
    for second in range(20, 30):
        endless.step(float(second))
    assert not endless.finished
    assert source.counters["ds2rio-udp/Received"] > 8
    fast = Replay(capture_of(items), source, speed=0)
    fast.step(50.0)
    assert fast.finished


def test_empty_and_foreign_files():
    source = FrcSource(FrcSettings(replay="x"), "bench")
    empty = Replay(capture_of([]), source, loop=True)
    empty.step(1.0)
    assert empty.finished
    assert empty.next_deadline(1.0) is None
    with pytest.raises(DecodeError):
        Replay(b"GIF89a", source)
