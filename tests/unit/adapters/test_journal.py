"""The journal's native protocol, parsed back field by field; a journal that does not read costs nothing but a count."""

import logging
import socket
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from aoabridge.adapters.journal import MAX_RECORD_BYTES, JournalHandler, encode_record

DEADLINE_S = 5.0


def parsed(data: bytes) -> dict[str, str]:
    fields: dict[str, str] = {}
    while data:
        line, _, rest = data.partition(b"\n")
        name, equals, value = line.partition(b"=")
        if equals:
            fields[name.decode()], data = value.decode(), rest
        else:
            (size,) = struct.unpack_from("<Q", rest)
            fields[line.decode()] = rest[8 : 8 + size].decode()
            assert rest[8 + size : 9 + size] == b"\n"
            data = rest[9 + size :]
    return fields


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.bind(str(tmp_path / "journal"))
        receiver.settimeout(DEADLINE_S)
        yield receiver


@pytest.fixture
def logger(tmp_path: Path) -> Iterator[logging.Logger]:
    found = logging.getLogger("aoabridge.test_journal")
    found.propagate = False
    found.setLevel("DEBUG")
    handler = JournalHandler(tmp_path / "journal")
    found.addHandler(handler)
    yield found
    found.removeHandler(handler)
    handler.close()


def handler_of(logger: logging.Logger) -> JournalHandler:
    handler = logger.handlers[0]
    assert isinstance(handler, JournalHandler)
    return handler


def test_a_record_arrives_with_its_fields(journal: socket.socket, logger: logging.Logger) -> None:
    logger.warning("%s lost", "scout", extra={"device": "scout", "code": "phone-lost", "port": "1-1.3", "count": 2})
    fields = parsed(journal.recv(1 << 18))
    assert int(fields.pop("AOABRIDGE_MONO_US")) > 0
    assert fields.pop("CODE_FILE").endswith("test_journal.py")
    assert int(fields.pop("CODE_LINE")) > 0
    assert fields == {
        "MESSAGE": "scout lost",
        "PRIORITY": "4",
        "SYSLOG_IDENTIFIER": "aoabridge",
        "LOGGER": "aoabridge.test_journal",
        "THREAD_NAME": "MainThread",
        "CODE_FUNC": "test_a_record_arrives_with_its_fields",
        "MESSAGE_ID": "465d424854645067a7061e8be4f91cb6",
        "AOABRIDGE_DEVICE": "scout",
        "AOABRIDGE_PORT": "1-1.3",
        "AOABRIDGE_CODE": "phone-lost",
        "AOABRIDGE_COUNT": "2",
    }
    assert all(name == name.upper() for name in fields)


@pytest.mark.parametrize(
    ("level", "priority"), [("critical", "2"), ("error", "3"), ("warning", "4"), ("info", "6"), ("debug", "7")]
)
def test_levels_become_priorities(journal: socket.socket, logger: logging.Logger, level: str, priority: str) -> None:
    getattr(logger, level)("x", extra={"code": "started"})
    fields = parsed(journal.recv(1 << 18))
    assert (fields["PRIORITY"], fields["MESSAGE_ID"]) == (priority, "f12612ba0c4a5ecc851014350f116207")


def test_tracebacks_and_line_ends_survive(journal: socket.socket, logger: logging.Logger) -> None:
    try:
        raise ValueError("first\nsecond")
    except ValueError:
        logger.exception("failed")
    message = parsed(journal.recv(1 << 18))["MESSAGE"]
    assert message.startswith("failed\nTraceback")
    assert message.endswith("ValueError: first\nsecond")


def test_a_full_journal_drops_counts_and_reports_the_count_with_the_next_record(
    journal: socket.socket, logger: logging.Logger
) -> None:
    for number in range(200):
        logger.info("line %d", number)
    dropped = handler_of(logger).dropped
    assert dropped > 0
    received = [parsed(journal.recv(1 << 18)) for _ in range(200 - dropped)]
    assert all("AOABRIDGE_DROPPED" not in fields for fields in received)
    logger.info("again")
    assert parsed(journal.recv(1 << 18))["AOABRIDGE_DROPPED"] == str(dropped)
    logger.info("and again")
    assert "AOABRIDGE_DROPPED" not in parsed(journal.recv(1 << 18))


def test_a_journal_that_is_away_is_no_error(tmp_path: Path) -> None:
    handler = JournalHandler(tmp_path / "nowhere")
    handler.handle(logging.makeLogRecord({"msg": "x", "levelno": logging.INFO}))
    assert handler.dropped == 1
    handler.close()


def test_a_record_that_is_too_long_is_cut_between_fields() -> None:
    data = encode_record([("A", "x" * 100_000), ("B", "y" * 20_000), ("C", "z")])
    assert len(data) <= MAX_RECORD_BYTES
    assert set(parsed(data)) == {"A"}
