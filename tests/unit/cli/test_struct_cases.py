"""``decode struct`` and ``encode struct`` over every shared struct case, through the command line."""

import io
import json
import sys
from pathlib import Path

import pytest

from aoabridge.cli import main

CASES = json.loads((Path(__file__).parents[2] / "vectors" / "struct_cases.json").read_text())["cases"]
NOT_FINITE = {"NaN", "Infinity", "-Infinity"}
NO_INPUT = 66


def of_kind(*kinds):
    return [pytest.param(case, id=case["name"]) for case in CASES if case["kind"] in kinds]


class Stdin:
    def __init__(self, data):
        self.buffer = io.BytesIO(data)


@pytest.fixture
def struct_command(capsys, monkeypatch, tmp_path):
    """Run ``decode`` or ``encode`` with the case's schemas in a file and one line on standard input."""

    def run(word, case, line):
        schema = tmp_path / "schemas"
        # A line of the file is one schema; within one a line end means the same as a blank.
        schema.write_text("".join(f"{name}: {text.translate({10: ' '})}\n" for name, text in case["schemas"]))
        type_name = case["type"] + ("[]" if "array" in case else "")
        monkeypatch.setattr(sys, "stdin", Stdin(line.encode() + b"\n"))
        status = main([word, "struct", "--schema", str(schema), "--type", type_name])
        out, err = capsys.readouterr()
        return status, out.splitlines(), err

    return run


def same(got, expected):
    """Equal, types included; JSON has only null for what is not finite."""
    if isinstance(expected, dict):
        return isinstance(got, dict) and list(got) == list(expected) and all(same(got[k], expected[k]) for k in got)
    if isinstance(expected, list):
        return isinstance(got, list) and len(got) == len(expected) and all(map(same, got, expected))
    if got is None:
        return expected in NOT_FINITE
    return type(got) is type(expected) and got == expected


def is_finite(value):
    if isinstance(value, dict):
        return all(map(is_finite, value.values()))
    return all(map(is_finite, value)) if isinstance(value, list) else value is not None


@pytest.mark.parametrize("case", of_kind("decode"))
def test_decode_and_encode_again(struct_command, case):
    status, (line,), err = struct_command("decode", case, case["hex"])
    assert (status, err) == (0, "")
    read = json.loads(line)
    assert read["protocol"] == "struct"
    assert read["packet"] == case["type"] + ("[]" if "array" in case else "")
    assert same(read["fields"], case["expect"]), read["fields"]
    status, (octets,), err = struct_command("encode", case, line)
    assert (status, err) == (0, "")
    if is_finite(read["fields"]):
        assert octets == (case["hex"] if case["roundtrip"] else case["encode_hex"])
    else:
        assert len(octets) == len(case["hex"])


@pytest.mark.parametrize("case", of_kind("too_short", "too_long"))
def test_a_wrong_length_is_an_error_line(struct_command, case):
    status, (line,), _ = struct_command("decode", case, case["hex"])
    assert status == 1
    expected = "TruncatedError" if case["kind"] == "too_short" else "DecodeError"
    assert json.loads(line)["error"]["type"] == expected


@pytest.mark.parametrize("case", of_kind("schema_error", "unresolved"))
@pytest.mark.parametrize("word", ["decode", "encode"])
def test_a_schema_that_cannot_be_used_ends_the_command(struct_command, case, word):
    status, out, err = struct_command(word, case, "")
    assert (status, out) == (NO_INPUT, [])
    code = case["error"]["code"] if case["kind"] == "schema_error" else "unresolved"
    assert f"({code})" in err
    if "missing" in case:
        assert case["missing"] in err


@pytest.mark.parametrize("case", [param for param in of_kind("decode") if param.values[0]["hex"]][::7])
def test_every_shorter_input_is_an_error_line(struct_command, case):
    size = 2 * case["size"]
    for length in range(0, len(case["hex"]), 2):
        if "array" in case and length % size == 0:
            continue
        status, (line,), _ = struct_command("decode", case, case["hex"][:length])
        assert status == 1
        assert json.loads(line)["error"]["type"] in {"TruncatedError", "DecodeError"}
