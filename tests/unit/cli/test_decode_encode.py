"""The commands over every shared case: line n out belongs to line n in, and decode | encode is the identity."""

import io
import json
import sys
from pathlib import Path

import pytest

from aoabridge.cli import main

VECTORS = Path(__file__).parents[2] / "vectors"
FRC = json.loads((VECTORS / "frc_ds_vectors.json").read_text())
TELEOP = json.loads((VECTORS / "teleop_vectors.json").read_text())
FRC_IDS = sorted({vector["protocol"] for vector in FRC})
LENGTH_FAULTS = {"tag_overrun", "zero_size_tag", "incomplete_frame"}


class Stdin:
    def __init__(self, data):
        self.buffer = io.BytesIO(data)


@pytest.fixture
def command(capsys, monkeypatch):
    def run(*words, lines=None, data=None):
        if lines is not None:
            data = "".join(line + "\n" for line in lines).encode()
        monkeypatch.setattr(sys, "stdin", Stdin(data or b""))
        status = main(list(words))
        out, err = capsys.readouterr()
        return status, out.splitlines(), err

    return run


def expected_line(vector, *, strict=False):
    line = {"protocol": vector["protocol"]}
    error = vector["strict_error"] if strict else vector["error"]
    if error:
        return line | {"error": {"type": error["type"], "offset": error["offset"]}}
    line |= {"packet": vector["packet"], "fields": vector["fields"]}
    return line | ({"faults": vector["faults"]} if vector["faults"] else {})


def without_message(text):
    line = json.loads(text)
    if "error" in line:
        assert isinstance(line["error"].pop("message"), str)
    return line


@pytest.mark.parametrize("protocol", FRC_IDS)
@pytest.mark.parametrize("strict", [False, True])
def test_frc_vectors(command, protocol, strict):
    vectors = [vector for vector in FRC if vector["protocol"] == protocol]
    status, out, err = command(
        "decode", protocol, *(["--strict"] if strict else []), lines=[vector["hex"] for vector in vectors]
    )
    assert [without_message(line) for line in out] == [expected_line(vector, strict=strict) for vector in vectors]
    assert status == int(any(vector["strict_error" if strict else "error"] for vector in vectors))
    assert err == ""


@pytest.mark.parametrize("protocol", FRC_IDS)
def test_frc_identity(command, protocol):
    vectors = [vector for vector in FRC if vector["protocol"] == protocol and vector["roundtrip"]]
    _, decoded, _ = command("decode", protocol, lines=[vector["hex"].upper() for vector in vectors])
    status, out, _ = command("encode", protocol, lines=decoded)
    assert (status, out) == (0, [vector["hex"] for vector in vectors])
    lines = [json.dumps({"fields": vector["fields"]}) for vector in vectors]  # packet may be left out here
    assert command("encode", protocol, lines=lines)[:2] == (0, out)


def test_teleop_vectors(command):
    vectors = [vector for vector in TELEOP if not vector.get("kinds")]
    status, out, _ = command("decode", "teleop", lines=[vector["hex"] for vector in vectors])
    for vector, line in zip(vectors, map(json.loads, out), strict=True):
        assert line["protocol"] == "teleop"
        if vector["valid"]:
            assert (line["packet"], line["fields"]) == (vector["packet"], vector["fields"])
        else:
            assert (line["error"]["type"], line["error"]["offset"]) == (
                vector["error"]["type"],
                vector["error"]["offset"],
            )
    assert status == 1
    good = [(vector["hex"], line) for vector, line in zip(vectors, out, strict=True) if vector["valid"]]
    assert command("encode", "teleop", lines=[line for _, line in good])[:2] == (0, [text for text, _ in good])


@pytest.mark.parametrize("vector", [v for v in TELEOP if v.get("kinds")], ids=lambda vector: vector["name"])
def test_teleop_kinds(command, vector):
    status, out, _ = command("decode", "teleop", "--kinds", ",".join(vector["kinds"]), lines=[vector["hex"]])
    line = json.loads(out[0])
    assert status == (0 if vector["valid"] else 1)
    if vector["valid"]:
        assert line["fields"] == vector["fields"]
    else:
        assert line["error"]["type"] == vector["error"]["type"]


def test_hex_forms(command):
    good = "00 01 0100 10 00"
    status, out, _ = command("decode", "ds2rio-udp", lines=[good, " 0\t00101001000 ", good.upper() + "\r"])
    assert status == 0
    assert len(set(out)) == 1
    bad = ["0", "0001010010000", "zz", "0x0001", "00,01", "00\x0b01", "０１"]
    status, out, _ = command("decode", "ds2rio-udp", lines=[*bad, good])
    assert status == 1
    for line in map(json.loads, out[:-1]):
        assert (line["error"]["type"], line["error"]["offset"]) == ("DecodeError", None)
    assert "fields" in json.loads(out[-1])
    assert len(command("decode", "ds2rio-udp", data=b"\xff\xfe\n\x00\n")[1]) == 2


def test_an_empty_line_is_a_zero_length_packet(command):
    status, out, _ = command("decode", "fms2ds-udp", lines=["", ""])
    assert status == 1
    assert [json.loads(line)["error"]["type"] for line in out] == ["TruncatedError"] * 2
    status, out, _ = command("decode", "fms2ds-tcp", lines=[""])
    assert (status, json.loads(out[0])["fields"]) == (0, {"frames": []})
    assert command("encode", "fms2ds-tcp", lines=out)[:2] == (0, [""])
    assert command("decode", "teleop", data=b"")[:2] == (0, [])
    assert len(command("decode", "teleop", data=b"\naa")[1]) == 2


def test_text_replace(command):
    line = "000000000000000000010000000000000000000000000320fffe"
    exact, replaced = (
        json.loads(command("decode", "fms2ds-udp", "--text", text, lines=[line])[1][0]) for text in ("exact", "replace")
    )
    assert exact["fields"]["tags"][0]["game_data"] == {"raw_hex": "fffe"}
    assert replaced["fields"]["tags"][0]["game_data"] == "\ufffd\ufffd"
    unknown = "0000000000000000000100000000000000000000000003ee41fe"
    out = command("decode", "fms2ds-udp", "--text", "replace", lines=[unknown])[1]
    assert json.loads(out[0])["fields"]["tags"][0]["raw_hex"] == "41fe"


@pytest.mark.parametrize(
    ("line", "field"),
    [
        ("", None),
        ("not json", None),
        ('{"fields":{"frames":[]}} trailing', None),
        ("[]", None),
        ('"\\ud800"', None),
        ("{}", "fields"),
        ('{"protocol":"ds2fms-tcp","error":{"type":"DecodeError"}}', "fields"),
        ('{"packet":"ds_status","fields":{"frames":[]}}', "packet"),
        ('{"packet":7,"fields":{"frames":[]}}', "packet"),
        ('{"packet":"frames","fields":[]}', "frames"),
        ('{"packet":"frames","fields":{"frames":[{"name":"team_number","team":65536}]}}', "frames[0].team"),
    ],
)
def test_lines_that_cannot_be_encoded(command, line, field):
    status, out, _ = command("encode", "ds2fms-tcp", lines=[line, '{"fields":{"frames":[{"name":"ping"}]}}'])
    assert status == 1
    error = json.loads(out[0])
    assert error["protocol"] == "ds2fms-tcp"
    assert set(error["error"]) == {"type", "message", "field"}
    assert (error["error"]["type"], error["error"]["field"]) == ("EncodeError", field)
    assert out[1] == "00011d"


def test_teleop_encode_needs_a_packet(command):
    status, out, _ = command("encode", "teleop", lines=['{"fields":{"ctrl_state":1}}'])
    assert (status, json.loads(out[0])["error"]["field"]) == (1, "packet")
    line = '{"packet":"home_trigger","fields":{"ctrl_state":1},"time_s":3}'
    assert command("encode", "teleop", lines=[line])[:2] == (0, ["100011000100"])


def test_files(command, tmp_path):
    path = tmp_path / "lines"
    path.write_text("00011d\n")
    assert command("decode", "ds2fms-tcp", str(path))[0] == 0
    assert command("decode", "ds2fms-tcp", "-", lines=["00011d"])[0] == 0
    for missing in (tmp_path / "nowhere", tmp_path):
        status, out, err = command("decode", "ds2fms-tcp", str(missing))
        assert (status, out) == (66, [])
        assert str(missing) in err
        assert command("encode", "ds2fms-tcp", str(missing))[0] == 66


@pytest.mark.parametrize(
    "words",
    [
        ["decode", "fms2ds"],
        ["encode", "nothing"],
        ["decode"],
        ["decode", "teleop", "--kinds", "uplink,downlnk"],
        ["decode", "fms2ds-udp", "--kinds", "uplink"],
        ["decode", "fms2ds-udp", "--byte-order", "little"],
        ["decode", "fms2ds-udp", "--port", "1121"],
        ["decode", "fms2ds-udp", "--pcap", "--port", "0"],
        ["decode", "struct"],
        ["decode", "teleop", "--schema", "x", "--type", "y"],
        ["encode", "j519-to-robot", "--byte-order", "auto"],
        ["encode", "fms2ds-udp", "--pcap"],
        ["encode", "teleop", "--kinds", "uplink"],
    ],
)
def test_usage_errors(command, words):
    status, out, err = command(*words)
    assert (status, out) == (64, [])
    assert err


def test_the_nearest_protocol_is_named(command):
    assert "fms2ds-udp" in command("decode", "fms2ds-upd")[2]


def test_struct(command, tmp_path):
    schema = tmp_path / "schema"
    schema.write_text("Inner: int8 b\nPoint: double x;Inner inner\n")
    words = ("struct", "--schema", str(schema), "--type")
    lines = ["000000000000f83f05", "00", "000000000000f87f05"]
    status, out, _ = command("decode", *words, "Point", lines=lines)
    assert status == 1
    assert json.loads(out[0]) == {"protocol": "struct", "packet": "Point", "fields": {"x": 1.5, "inner": {"b": 5}}}
    assert json.loads(out[1])["error"]["type"] == "TruncatedError"
    assert json.loads(out[2])["fields"]["x"] is None
    assert command("encode", *words, "Point", lines=[out[0], out[2]])[:2] == (0, [lines[0], lines[2]])
    status, out, _ = command("decode", *words, "Inner[]", lines=["0102", ""])
    assert [json.loads(line)["fields"] for line in out] == [[{"b": 1}, {"b": 2}], []]
    assert command("encode", *words, "Inner[]", lines=out)[:2] == (0, ["0102", ""])
    assert command("decode", *words, "Missing", lines=[])[0] == 66
    assert command("decode", "struct", "--schema", str(tmp_path / "no"), "--type", "X")[0] == 66
    assert command("decode", *words, "Point", "--pcap", lines=[])[0] == 64
    schema.write_bytes(b"\xff")
    assert command("decode", *words, "Point", lines=[])[0] == 66


def test_j519_in_both_byte_orders(command):
    start = "0000000000000001"
    status, out, _ = command("decode", "j519-to-robot", lines=[start])
    assert (status, json.loads(out[0])["packet"]) == (0, "start")
    assert command("encode", "j519-to-robot", lines=out)[:2] == (0, [start])
    little = command("encode", "j519-to-robot", "--byte-order", "little", lines=out)[1]
    assert little == ["0000000001000000"]
    for order in ("little", "auto"):
        assert command("decode", "j519-to-robot", "--byte-order", order, lines=little)[1] == out
    suspect = json.loads(command("decode", "j519-to-robot", lines=little)[1][0])
    assert suspect["suspect"] is True
