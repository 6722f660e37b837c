"""Every shared vector through ``aoabridge decode`` and ``encode`` as processes: line n out belongs to line n in."""

import io
import json
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import dpkt
import pytest

VECTORS = Path(__file__).parents[1] / "vectors"
Case = dict[str, Any]


def load(name: str) -> list[Case]:
    cases: list[Case] = json.loads((VECTORS / f"{name}_vectors.json").read_text())
    return cases


FRC, J519, TELEOP = load("frc_ds"), load("j519"), load("teleop")
FRC_IDS = sorted({case["protocol"] for case in FRC})
J519_RUNS = sorted({(case["protocol"], case["byte_order"]) for case in J519})


def command(*words: str, lines: Iterable[str] = (), data: bytes | None = None) -> tuple[int, list[str]]:
    given = "".join(line + "\n" for line in lines).encode() if data is None else data
    done = subprocess.run(
        [sys.executable, "-m", "aoabridge", *words], input=given, capture_output=True, timeout=60, check=False
    )
    assert done.stderr == b""
    return done.returncode, done.stdout.decode().splitlines()


def told(line: str) -> Case:
    found: Case = json.loads(line)
    if "error" in found:
        assert found["error"].pop("message")
    return found


def expected(case: Case) -> Case:
    """The line for a valid or refused case; ``needed`` of a vector is not part of the line."""
    line = {"protocol": case["protocol"]}
    if case.get("error"):
        return line | {"error": {"type": case["error"]["type"], "offset": case["error"]["offset"]}}
    line |= {"packet": case["packet"], "fields": case["fields"]}
    if case.get("suspect"):
        line["suspect"] = True
    return line | ({"faults": case["faults"]} if case.get("faults") else {})


def check_decode(protocol: str, cases: list[Case], *options: str) -> list[str]:
    status, out = command("decode", protocol, *options, lines=[case["hex"] for case in cases])
    assert [told(line) for line in out] == [expected(case) for case in cases]
    assert status == int(any(case.get("error") for case in cases))
    return out


def check_identity(protocol: str, cases: list[Case], decoded: list[str], *options: str) -> None:
    status, out = command("encode", protocol, *options, lines=decoded)
    assert out == [case["hex"] for case in cases]
    assert status == 0


@pytest.mark.parametrize("protocol", FRC_IDS)
def test_driver_station_protocols(protocol: str) -> None:
    cases = [case for case in FRC if case["protocol"] == protocol]
    decoded = check_decode(protocol, cases)
    pairs = [(case, line) for case, line in zip(cases, decoded, strict=True) if case["roundtrip"]]
    check_identity(protocol, [case for case, _ in pairs], [line for _, line in pairs])


@pytest.mark.parametrize(("protocol", "order"), J519_RUNS)
def test_stream_motion_in_its_byte_order(protocol: str, order: str) -> None:
    cases = [case for case in J519 if (case["protocol"], case["byte_order"]) == (protocol, order)]
    decoded = check_decode(protocol, cases, "--byte-order", order)
    pairs = [
        (case, line)
        for case, line in zip(cases, decoded, strict=True)
        if case["valid"] and case["packet"] != "motion_f64"
    ]
    check_identity(protocol, [case for case, _ in pairs], [line for _, line in pairs], "--byte-order", order)


def test_stream_motion_with_the_order_found_out() -> None:
    for protocol in ("j519-to-robot", "j519-from-robot"):
        cases = [
            case
            for case in J519
            if case["protocol"] == protocol and case["valid"] and case["auto"] == case["byte_order"]
        ]
        _, out = command("decode", protocol, "--byte-order", "auto", lines=[case["hex"] for case in cases])
        assert [told(line)["fields"] for line in out] == [case["fields"] for case in cases]


def test_remote_driving() -> None:
    runs: dict[tuple[str, ...], list[Case]] = {}
    for case in TELEOP:
        runs.setdefault(tuple(case.get("kinds") or ()), []).append(case)
    for kinds, cases in runs.items():
        options = ("--kinds", ",".join(kinds)) if kinds else ()
        decoded = check_decode("teleop", cases, *options)
        pairs = [(case, line) for case, line in zip(cases, decoded, strict=True) if case["valid"]]
        check_identity("teleop", [case for case, _ in pairs], [line for _, line in pairs])


def capture(datagrams: Iterable[tuple[bytes, int, int]]) -> bytes:
    """A pcap of (data, source port, destination port), one second apart."""
    target = io.BytesIO()
    writer = dpkt.pcap.Writer(target)
    for second, (data, source, destination) in enumerate(datagrams):
        packet = dpkt.udp.UDP(sport=source, dport=destination, data=data, ulen=8 + len(data))
        frame = dpkt.ip.IP(src=b"\n\0\0\1", dst=b"\n\0\0\2", p=17, data=packet)
        writer.writepkt(bytes(dpkt.ethernet.Ethernet(type=0x0800, data=frame)), ts=1000 + second)
    return target.getvalue()


CAPTURED = [("fms2ds-udp", 40000, 1121), ("ds2fms-udp", 40000, 1160), ("ds2rio-udp", 40000, 1110)]
CAPTURED += [("rio2ds-udp", 40000, 1150), ("j519-to-robot", 40000, 60015), ("j519-from-robot", 60015, 40000)]


@pytest.mark.parametrize(("protocol", "source", "destination"), CAPTURED)
def test_a_capture_gives_what_the_hex_lines_give(protocol: str, source: int, destination: int) -> None:
    cases = [
        case
        for case in (*FRC, *J519)
        if case["protocol"] == protocol and case.get("byte_order", "big") == "big" and case["hex"]
    ]
    _, plain = command("decode", protocol, lines=[case["hex"] for case in cases])
    data = capture((bytes.fromhex(case["hex"]), source, destination) for case in cases)
    _, captured = command("decode", protocol, "--pcap", data=data)
    extra = ("frame", "time_s", "src", "dst")
    assert [{key: value for key, value in json.loads(line).items() if key not in extra} for line in captured] == [
        json.loads(line) for line in plain
    ]
    assert [json.loads(line)["time_s"] for line in captured] == [1000.0 + second for second in range(len(cases))]
