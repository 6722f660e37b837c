import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aoabridge.phone.lines import MAX_TRANSFER, LineDecoder, LineKind, LinePacker, OutLine


def texts(decoder, *chunks):
    return [line.data for chunk in chunks for line in decoder.feed(chunk)]


def test_lines_do_not_care_about_chunks():
    whole = b'\xef\xbb\xbf{"a":1}\r\n\n  \n{"b":"\xc3\xa4"}\n'
    expected = [b'{"a":1}', b'{"b":"\xc3\xa4"}']
    assert texts(LineDecoder(100), whole) == expected
    assert texts(LineDecoder(100), *[whole[i : i + 1] for i in range(len(whole))]) == expected
    for cut in range(len(whole)):
        assert texts(LineDecoder(100), whole[:cut], whole[cut:]) == expected


def test_a_bom_later_in_the_stream_stays():
    assert texts(LineDecoder(100), b"x\n\xef\xbb\xbfy\n") == [b"x", b"\xef\xbb\xbfy"]


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_the_limit_is_on_the_line_without_its_end(end):
    decoder = LineDecoder(10)
    assert texts(decoder, b"0123456789" + end) == [b"0123456789"]
    (line,) = decoder.feed(b"0123456789X" + end)
    assert line.oversize
    assert texts(decoder, b"next" + end) == [b"next"]


def test_an_endless_line_is_reported_once_and_not_held():
    decoder = LineDecoder(1 << 20)
    reports = [line for _ in range(40 * 64) for line in decoder.feed(b"x" * 16384)]
    assert [line.oversize for line in reports] == [True]
    assert len(reports[0].data) == 480
    assert not decoder._held
    assert texts(decoder, b"tail\n{}\n") == [b"{}"]


def test_resync_drops_up_to_the_next_line():
    decoder = LineDecoder(100)
    decoder.feed(b'{"half":')
    decoder.resync()
    assert texts(decoder, b'1}\n{"whole":1}\n') == [b'{"whole":1}']


def test_a_line_begun_in_the_backlog_is_early():
    decoder = LineDecoder(100, early=True)
    assert decoder.feed(b"one\ntw")[0].early
    decoder.end_backlog()
    lines = decoder.feed(b"o\nthree\n")
    assert [line.early for line in lines] == [True, False]
    decoder = LineDecoder(100, early=True)
    decoder.end_backlog()
    assert [line.early for line in decoder.feed(b"one\n")] == [False]


def control(data):
    return OutLine(data, LineKind.CONTROL)


class Source:
    """What an outbox does: gives lines in order, takes back what was not sent."""

    def __init__(self, lines):
        self.lines = list(lines)

    def pull(self, room, empty):
        if self.lines and (empty or len(self.lines[0].data) <= room):
            return self.lines.pop(0)
        return None


def test_whole_lines_are_packed_and_long_ones_split():
    lines = [control(b"a" * 8000 + b"\n"), control(b"b" * 8381 + b"\n"), control(b"c" * 20000 + b"\n")]
    source, packer = Source(lines), LinePacker(512)
    sizes = []
    while data := packer.take(source.pull):
        sizes.append(len(data))
        packer.accepted(len(data))
    assert sizes == [8002, 8382, 16383, 20001 - 16383]


def test_a_multiple_of_the_packet_size_gets_a_blank_line():
    packer = LinePacker(64)
    assert packer.take(Source([control(b"x" * 62 + b"\n")]).pull) == b"\n" + b"x" * 62 + b"\n\n"


def test_the_blank_filler_follows_when_only_it_is_missing():
    packer = LinePacker(64)
    packer.take(Source([control(b"x" * 62 + b"\n")]).pull)
    result = packer.accepted(64)
    assert [len(line.data) for line in result.sent] == [63]
    assert result.returned == []
    assert packer.take(Source([]).pull) == b"\n"


def test_probe_is_the_rest_of_a_line_or_one_blank_line():
    source, packer = Source([control(b"x" * 100 + b"\n"), control(b"y\n")]), LinePacker(64)
    packer.take(source.pull)
    result = packer.accepted(64)
    assert [line.data for line in result.returned] == [b"y\n"]
    assert packer.take(source.pull, probe=True) == b"x" * 37 + b"\n"
    packer.accepted(0)
    assert packer.unfinished is not None
    assert packer.take(source.pull, probe=True) == b"x" * 37 + b"\n"
    packer.accepted(38)
    assert packer.take(source.pull, probe=True) == b"\n"


def test_a_failed_transfer_is_sent_again_after_a_line_break():
    source, packer = Source([control(b"x" * 100 + b"\n")]), LinePacker(64)
    packer.take(source.pull)
    packer.accepted(64)
    packer.take(source.pull)
    result = packer.failed()
    assert [line.data for line in result.returned] == [b"x" * 100 + b"\n"]
    assert packer.take(Source(result.returned).pull) == b"\n" + b"x" * 100 + b"\n"


def test_a_multi_byte_character_is_not_cut():
    packer = LinePacker(512)
    line = ("ä" * 20000 + "\n").encode()
    data = packer.take(Source([control(line)]).pull)
    assert len(data) >= 16380
    data.decode()


line_bytes = st.one_of(
    st.integers(1, 700).map(lambda n: b"l" * (n - 1) + b"\n"),
    st.integers(15_000, 40_000).map(lambda n: ("€" * (n // 3)).encode() + b"\n"),
)


@settings(deadline=None)
@given(st.lists(line_bytes, max_size=30), st.sampled_from([64, 512, 1024]), st.randoms(use_true_random=False))
def test_the_phone_reads_the_lines_plus_blank_ones_whatever_it_accepts(lines, packet_size, random):
    source, packer, stream = Source(map(control, lines)), LinePacker(packet_size), b""
    while data := packer.take(source.pull):
        assert len(data) <= MAX_TRANSFER
        assert len(data) % packet_size
        count = random.choice([len(data), len(data), 0, random.randrange(len(data) // packet_size + 1) * packet_size])
        stream += data[:count]
        source.lines[:0] = packer.accepted(count).returned
    assert [line + b"\n" for line in stream.split(b"\n") if line] == [line for line in lines if line != b"\n"]
