"""Each fault does what the counters of a listener will say."""

import pytest

from aoabridge.codecs import frc_ds
from aoabridge.errors import TruncatedError
from aoabridge.simulators.frc_faults import DATAGRAM_FAULTS, FAULT_SHARE, FrcFaults, parse_frc_faults

CONTROL = bytes.fromhex("0000000600020200290100000000000000000000000a")[:22]


def disturbed(fault: str, protocol: str = "fms2ds-udp", data: bytes = CONTROL) -> tuple[FrcFaults, list[list[bytes]]]:
    faults = FrcFaults((fault,), seed=3)
    return faults, [faults.datagrams(protocol, data) for _ in range(2000)]


@pytest.mark.parametrize("fault", DATAGRAM_FAULTS)
def test_two_percent_and_each_counted(fault: str) -> None:
    faults, sent = disturbed(fault)
    count = faults.injected[f"fms2ds-udp/{fault}"]
    assert count == sum(datagrams != [CONTROL] for datagrams in sent) // (2 if fault == "reorder" else 1)
    assert 0.5 * FAULT_SHARE < count / 2000 < 1.5 * FAULT_SHARE


@pytest.mark.parametrize(("fault", "code"), [("zero-tag", "zero_size_tag"), ("overrun", "tag_overrun")])
def test_faults_of_tags(fault: str, code: str) -> None:
    _, sent = disturbed(fault)
    bad = next(datagrams[0] for datagrams in sent if datagrams != [CONTROL])
    assert [found.code for found in frc_ds.decode("fms2ds-udp", bad).faults] == [code]


def test_foreign_values() -> None:
    for fault in ("bad-level", "station-6"):
        bad = next(datagrams[0] for datagrams in disturbed(fault)[1] if datagrams != [CONTROL])
        assert frc_ds.decode("fms2ds-udp", bad).unknown_values == 1
    bad = next(datagrams[0] for datagrams in disturbed("unknown-tag")[1] if datagrams != [CONTROL])
    assert frc_ds.decode("fms2ds-udp", bad).unknown_tags == 1
    bad = next(datagrams[0] for datagrams in disturbed("bad-text")[1] if datagrams != [CONTROL])
    assert frc_ds.to_fields(frc_ds.decode("fms2ds-udp", bad))["tags"][0]["game_data"] == {"raw_hex": "fffe"}
    bad = next(datagrams[0] for datagrams in disturbed("truncate")[1] if datagrams != [CONTROL])
    with pytest.raises(TruncatedError):
        frc_ds.decode("fms2ds-udp", bad)


def test_a_link_without_text_knows_no_bad_text() -> None:
    faults, sent = disturbed("bad-text", "rio2ds-udp", bytes(8))
    assert all(datagrams == [bytes(8)] for datagrams in sent)
    assert not faults.injected


def test_a_stream_loses_nothing() -> None:
    faults = FrcFaults(("split", "merge", "slow"), seed=5)
    frames = [bytes([0, 1, number % 256]) for number in range(2000)]
    written = b"".join(piece for frame in frames for piece, _ in faults.pieces("fms2ds-tcp", 1, frame))
    assert b"".join(frames).startswith(written)
    assert len(written) > 5900
    assert {name.partition("/")[2] for name in faults.injected} == {"split", "merge", "slow"}


def test_names() -> None:
    assert parse_frc_faults("loss, dup") == ("loss", "dup")
    assert parse_frc_faults("") == ()
    assert len(parse_frc_faults("all")) == 14
    with pytest.raises(ValueError, match="unknown fault 'lose'"):
        parse_frc_faults("lose")


def test_the_same_seed_gives_the_same_run() -> None:
    def run(seed: int) -> list[list[bytes]]:
        faults = FrcFaults(DATAGRAM_FAULTS, seed=seed, loss=0.1)
        return [faults.datagrams("ds2rio-udp", bytes(6)) for _ in range(500)]

    assert run(7) == run(7) != run(8)
