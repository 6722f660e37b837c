import subprocess
import sys

import pytest

from aoabridge.codecs.line_codecs import Options
from aoabridge.codecs.protocols import PROTOCOLS, open_protocol
from aoabridge.errors import SchemaError, UnknownPacketError

IDS = "fms2ds-udp fms2ds-tcp ds2fms-udp ds2fms-tcp ds2rio-udp ds2rio-tcp rio2ds-udp rio2ds-tcp ds2dash-tcp"
PORTS = {
    "fms2ds-udp": ("udp", "dst", {1120, 1121}),
    "ds2fms-udp": ("udp", "dst", {1160}),
    "fms2ds-tcp": ("tcp", "src", {1750}),
    "ds2fms-tcp": ("tcp", "dst", {1750}),
    "ds2rio-udp": ("udp", "dst", {1110, 1115, 1164}),
    "rio2ds-udp": ("udp", "dst", {1150, 1166}),
    "ds2rio-tcp": ("tcp", "dst", {1740}),
    "rio2ds-tcp": ("tcp", "src", {1740}),
    "ds2dash-tcp": ("tcp", "dst", {1741}),
    "j519-to-robot": ("udp", "dst", {60015}),
    "j519-from-robot": ("udp", "src", {60015}),
    "teleop": ("udp", "dst", {10010, 10012, 10013, 10015}),
}


def test_the_table():
    assert list(PROTOCOLS) == [*IDS.split(), "j519-to-robot", "j519-from-robot", "teleop", "struct"]
    found = {
        name: (row.capture.transport, row.capture.side, set(row.capture.ports))
        for name, row in PROTOCOLS.items()
        if row.capture
    }
    assert found == PORTS


def test_wrong_calls():
    with pytest.raises(ValueError, match="unknown protocol"):
        open_protocol("fms", Options())
    with pytest.raises(SchemaError):
        open_protocol("struct", Options(schema="X: int8", type_name="X"))


def test_a_port_of_teleop_says_what_is_expected_unless_kinds_do():
    downlink = bytes.fromhex("aa0af10a0a00dc0523000000010000003aeeffff")
    assert open_protocol("teleop", Options()).decode(downlink).packet == "downlink"
    assert open_protocol("teleop", Options(), port=9110).decode(downlink).packet == "downlink"
    assert open_protocol("teleop", Options(kinds=("downlink",)), port=10010).decode(downlink).packet == "downlink"
    with pytest.raises(UnknownPacketError):
        open_protocol("teleop", Options(), port=10010).decode(downlink)


def test_only_the_codec_asked_for_is_imported():
    code = (
        "import sys; from aoabridge.codecs.protocols import *; from aoabridge.codecs.line_codecs import Options;"
        "open_protocol('teleop', Options());"
        "wrong = ('aoabridge.codecs.frc', 'aoabridge.codecs.j519', 'ntcore', 'usb', 'rich', 'websockets');"
        "print([name for name in sys.modules if name.startswith(wrong)])"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")
