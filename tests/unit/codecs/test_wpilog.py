"""Byte for byte what WPILib's own writer makes of the same values, and read back by its reader."""

import struct
from pathlib import Path

import pytest
import wpiutil
from wpiutil.log import DataLogReader

from aoabridge.codecs.wpilog import WpilogEncoder

SETTERS = {
    "boolean": "appendBoolean",
    "int64": "appendInteger",
    "float": "appendFloat",
    "double": "appendDouble",
    "string": "appendString",
    "json": "appendString",
    "boolean[]": "appendBooleanArray",
    "int64[]": "appendIntegerArray",
    "float[]": "appendFloatArray",
    "double[]": "appendDoubleArray",
    "string[]": "appendStringArray",
    "struct:X": "appendRaw",
}
VALUES = [
    ("boolean", [True, False]),
    ("int64", [0, -1, (1 << 63) - 1, -(1 << 63)]),
    ("float", [1.5, float("inf")]),
    ("double", [0.1, -0.0, 1e308]),
    ("string", ["", "ä" * 300, "x" * 70_000]),
    ("json", ['{"a":1}']),
    ("boolean[]", [[], [True, False, True]]),
    ("int64[]", [[], [1, -2, 3]]),
    ("float[]", [[0.5]]),
    ("double[]", [[], [0.1] * 40]),
    ("string[]", [[], ["", "ü", "abc"]]),
    ("struct:X", [b"", bytes(range(256))]),
]
TIMES_US = [1, 255, 256, 1 << 40]


def test_every_type_is_what_wpilib_writes(tmp_path: Path) -> None:
    path = tmp_path / "reference.wpilog"
    writer = wpiutil.DataLogWriter(str(path), "AOABridge")
    encoder = WpilogEncoder("AOABridge")
    found = encoder.header
    for type_, values in VALUES:
        entry = writer.start(f"NT:/{type_}", type_, '{"source":"NT"}', TIMES_US[0])
        for value, time_us in zip(values, TIMES_US, strict=False):
            getattr(writer, SETTERS[type_])(entry, value, time_us)
            found += encoder.record(f"NT:/{type_}", type_, '{"source":"NT"}', value, time_us)
    writer.flush()
    writer.stop()
    assert found == path.read_bytes()


def test_an_entry_that_changes_its_type_begins_anew(tmp_path: Path) -> None:
    encoder = WpilogEncoder("")
    data = encoder.header + encoder.record("NT:/x", "int64", "", 1, 10) + encoder.record("NT:/x", "double", "", 0.5, 20)
    path = tmp_path / "x.wpilog"
    path.write_bytes(data)
    reader = DataLogReader(str(path))  # owns what its one record shows
    seen = [
        ("finish", record.getFinishEntry())
        if record.isFinish()
        else ("start", record.getStartData().type)
        if record.isStart()
        else (record.getEntry(), record.getDouble())
        for record in reader
    ]
    assert seen[0] == ("start", "int64")
    assert seen[2:] == [("finish", 1), ("start", "double"), (2, 0.5)]


def test_many_entries_and_large_values_need_longer_numbers(tmp_path: Path) -> None:
    encoder = WpilogEncoder("")
    data = encoder.header
    for number in range(300):
        data += encoder.record(f"NT:/{number}", "int64", "", number, number)
    path = tmp_path / "x.wpilog"
    path.write_bytes(data)
    reader = DataLogReader(str(path))
    values = [(record.getEntry(), record.getInteger()) for record in reader if not record.isControl()]
    assert values == [(number + 1, number) for number in range(300)]


@pytest.mark.parametrize(("type_", "value"), [("int64", "1"), ("double", None), ("string[]", [1]), ("raw", 1.5)])
def test_a_value_of_another_type_leaves_no_entry(type_: str, value: object) -> None:
    encoder = WpilogEncoder("")
    with pytest.raises((TypeError, AttributeError, struct.error)):
        encoder.record("NT:/x", type_, "", value, 1)
    assert encoder.record("NT:/x", "int64", "", 1, 1)[:6] == WpilogEncoder("").record("NT:/x", "int64", "", 1, 1)[:6]
