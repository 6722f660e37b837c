"""Any class of packets: what fits comes back, what does not is refused by name."""

from typing import Annotated

from hypothesis import given
from hypothesis import strategies as st

from aoabridge.codecs.packets import Packet, PacketCodec
from aoabridge.codecs.wire import F64, I16, U8, U32, Wire
from aoabridge.errors import DecodeError, EncodeError


class Sample(Packet, frozen=True, gc=False):
    a: Annotated[int, U8]
    b: Annotated[int, I16]
    c: Annotated[int, U32]
    f: Annotated[float, Wire("f")]
    d: Annotated[float, F64]
    volts: Annotated[float, Wire("H", scale=1 / 256)]
    array: Annotated[tuple[float, ...], Wire("f", count=3)]
    text: Annotated[str, Wire("s", count=5)]


CODECS = (PacketCodec(Sample), PacketCodec(Sample, "little"))
NUMBERS = st.one_of(st.integers(-(1 << 40), 1 << 40), st.floats(), st.none(), st.text(max_size=3))


@given(st.binary(max_size=80))
def test_any_octets(data: bytes) -> None:
    for codec in CODECS:
        try:
            packet = codec.decode(data)
        except DecodeError:
            assert len(data) != codec.size
            continue
        assert len(data) == codec.size
        again = codec.encode(packet)
        assert len(again) == codec.size
        assert _words(again) == _words(data)
        assert codec.from_fields(codec.to_fields(packet)).text == packet.text


def _words(data: bytes) -> tuple[bytes, bytes]:
    """All octets but those of floats, whose NaNs become quiet."""
    return data[:7], data[19:21] + data[33:]


@given(st.tuples(NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, NUMBERS, st.tuples(NUMBERS, NUMBERS, NUMBERS), NUMBERS))
def test_any_values(values: tuple[object, ...]) -> None:
    packet = Sample(*values)  # type: ignore[arg-type]
    for codec in CODECS:
        try:
            data = codec.encode(packet)
        except EncodeError as error:
            assert error.field is not None and error.field.split("[")[0] in Sample.__struct_fields__
            continue
        back = codec.decode(data)
        assert (back.a, back.b, back.c) == (packet.a, packet.b, packet.c)
        assert abs(back.volts - packet.volts) <= 1 / 512
        assert back.text == packet.text.rstrip("\0")
