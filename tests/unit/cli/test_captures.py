"""``decode --pcap`` gives what the same bytes give as hex lines."""

import io
import json
import socket
import sys
from pathlib import Path

import dpkt
import pytest

from aoabridge.cli import main
from aoabridge.codecs.protocols import PROTOCOLS

VECTORS = Path(__file__).parents[2] / "vectors"
FRC = json.loads((VECTORS / "frc_ds_vectors.json").read_text())
TELEOP = json.loads((VECTORS / "teleop_vectors.json").read_text())
UDP_IDS = sorted({vector["protocol"] for vector in FRC if vector["transport"] == "udp"})
TCP_IDS = sorted({vector["protocol"] for vector in FRC if vector["transport"] == "tcp_stream"})


def ip(payload, protocol):
    packet = dpkt.ip.IP(src=socket.inet_aton("10.0.0.1"), dst=socket.inet_aton("10.0.0.2"), p=protocol, data=payload)
    return bytes(dpkt.ethernet.Ethernet(type=0x0800, data=packet))


def udp(data, sport, dport):
    return ip(dpkt.udp.UDP(sport=sport, dport=dport, data=data, ulen=8 + len(data)), 17)


def tcp(data, sport, dport, seq, flags=0x10):
    return ip(dpkt.tcp.TCP(sport=sport, dport=dport, seq=seq, flags=flags, data=data), 6)


def capture_of(frames):
    target = io.BytesIO()
    writer = dpkt.pcap.Writer(target)
    for index, frame in enumerate(frames):
        writer.writepkt(frame, ts=1000 + index)
    return target.getvalue()


@pytest.fixture
def decode(capsys, tmp_path):
    def run(protocol, *words, data):
        path = tmp_path / "capture.pcap"
        path.write_bytes(data)
        status = main(["decode", protocol, str(path), *words])
        out, err = capsys.readouterr()
        return status, [json.loads(line) for line in out.splitlines()], err

    return run


def hex_lines(decode, protocol, texts, *words):
    return decode(protocol, *words, data="".join(text + "\n" for text in texts).encode())[1]


@pytest.mark.parametrize("protocol", UDP_IDS)
def test_datagrams(decode, protocol):
    texts = [vector["hex"] for vector in FRC if vector["protocol"] == protocol]
    ports = PROTOCOLS[protocol].capture.ports
    frames = [udp(bytes.fromhex(text), 5555, ports[index % len(ports)]) for index, text in enumerate(texts)]
    frames.insert(0, udp(b"other port", 5555, 9))
    frames.insert(0, udp(b"other way", ports[0], 5555))
    _, lines, err = decode(protocol, "--pcap", data=capture_of(frames))
    for index, line in enumerate(lines):
        assert (line.pop("frame"), line.pop("time_s"), line.pop("src")) == (index + 3, 1002.0 + index, "10.0.0.1:5555")
        assert line.pop("dst") == f"10.0.0.2:{ports[index % len(ports)]}"
    assert lines == hex_lines(decode, protocol, texts)
    assert err == ""


@pytest.mark.parametrize("protocol", TCP_IDS)
def test_frames(decode, protocol):
    vectors = [v for v in FRC if v["protocol"] == protocol and v["transport"] == "tcp_stream"]
    rule = PROTOCOLS[protocol].capture
    for vector in vectors:
        data = bytes.fromhex(vector["hex"])
        ends = (rule.ports[0], 5555) if rule.side == "src" else (5555, rule.ports[0])
        frames = [tcp(b"", *ends, 99, flags=2)]
        frames += [tcp(data[at : at + 3], *ends, 100 + at) for at in range(0, len(data), 3)]
        frames[2:3] = [frames[2], frames[2], tcp(b"\0\0", *reversed(ends), 5)]  # a retransmission, the other direction
        status, lines, err = decode(protocol, "--pcap", data=capture_of(frames))
        for line in lines:
            assert len(line["fields"]["frames"]) == 1
            assert line["dst" if rule.side == "dst" else "src"].endswith(f":{rule.ports[0]}")
            for key in ("frame", "time_s", "src", "dst"):
                del line[key]
        assert lines == hex_lines(decode, protocol, vector["frame_hex"])
        assert status == 0
        assert ("left over" in err) == bool(len(data) - sum(len(text) // 2 for text in vector["frame_hex"]))


def test_other_ports_on_request(decode):
    data = capture_of([udp(bytes(22), 1, 4321), udp(bytes(22), 1, 1121), udp(bytes(22), 1, 4322)])
    assert [line["frame"] for line in decode("fms2ds-udp", "--pcap", data=data)[1]] == [2]
    assert [line["frame"] for line in decode("fms2ds-udp", "--pcap", "--port", "4321", "4322", data=data)[1]] == [1, 3]


def test_j519_by_side(decode):
    start = bytes.fromhex("0000000000000001")
    data = capture_of([udp(start, 1, 60015), udp(start, 60015, 1)])
    assert [line["frame"] for line in decode("j519-to-robot", "--pcap", data=data)[1]] == [1]
    assert [line["frame"] for line in decode("j519-from-robot", "--pcap", data=data)[1]] == [2]


def test_teleop_kinds_by_port(decode):
    octets = {
        kind: bytes.fromhex(next(v["hex"] for v in TELEOP if v["packet"] == kind and v["valid"]))
        for kind in ("uplink", "downlink", "home_ctrl", "home_trigger")
    }
    sent = [("uplink", 10010), ("uplink", 10012), ("home_trigger", 10013), ("home_ctrl", 10015), ("downlink", 10010)]
    data = capture_of([udp(octets[kind], 1, port) for kind, port in sent])
    status, lines, _ = decode("teleop", "--pcap", data=data)
    assert [line.get("packet") for line in lines] == ["uplink", "uplink", "home_trigger", "home_ctrl", None]
    assert lines[4]["error"]["type"] == "UnknownPacketError"
    assert status == 1
    status, lines, _ = decode("teleop", "--pcap", "--kinds", "downlink", data=data)
    assert [line.get("packet") for line in lines] == [None, None, None, None, "downlink"]
    moved = capture_of([udp(octets["downlink"], 1, 9110)])
    assert decode("teleop", "--pcap", "--port", "9110", data=moved)[1][0]["packet"] == "downlink"


def test_cut_and_foreign_files(decode):
    whole = capture_of([udp(bytes(22), 1, 1121), udp(bytes(22), 1, 1121)])
    status, lines, err = decode("fms2ds-udp", "--pcap", data=whole[:-1])
    assert (status, len(lines)) == (1, 1)
    assert "ends inside" in err
    assert decode("fms2ds-udp", "--pcap", data=b"GIF89a")[0] == 66
    gap = capture_of([tcp(b"\0\0", 1, 1750, 10), tcp(b"\0\0", 1, 1750, 99)])
    status, lines, err = decode("ds2fms-tcp", "--pcap", data=gap)
    assert (status, len(lines)) == (0, 1)
    assert "1 streams ended at a gap" in err


def test_a_capture_from_standard_input(capsys, monkeypatch):
    class Stdin:
        buffer = io.BytesIO(capture_of([udp(bytes(22), 1, 1121)]))

    monkeypatch.setattr(sys, "stdin", Stdin())
    assert main(["decode", "fms2ds-udp", "--pcap"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1
