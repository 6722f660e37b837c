from hypothesis import given, settings
from hypothesis import strategies as st

from aoabridge.codecs import teleop
from aoabridge.errors import DecodeError, TruncatedError, UnknownPacketError

MAGICS = [b"\xaa\x0a\xf1\x0a", b"\x00\x0a\x01\x0a", b"\x10\x00\x11\x00"]
KIND_SETS = st.none() | st.sets(st.sampled_from(teleop.KINDS))
OCTETS = st.binary(max_size=80) | st.tuples(st.sampled_from(MAGICS), st.binary(max_size=76)).map(b"".join)
I16, U16 = st.integers(-(1 << 15), (1 << 15) - 1), st.integers(0, (1 << 16) - 1)
I32, U32 = st.integers(-(1 << 31), (1 << 31) - 1), st.integers(0, (1 << 32) - 1)
PACKETS = st.one_of(
    st.builds(teleop.Uplink, I16, I16, U32, U32, U16, I16, I32, I16, I16, I16, I16),
    st.builds(teleop.Downlink, I16, I16, I16, I16, I16, I16, I32),
    st.builds(teleop.HomeCtrl, I16, I32, I16, I16, I16, I16),
    st.builds(teleop.HomeTrigger, I16),
)


@settings(max_examples=500, deadline=None)
@given(
    data=st.one_of(st.binary(max_size=80), st.tuples(st.sampled_from(MAGICS), st.binary(max_size=76)).map(b"".join)),
    kinds=KIND_SETS,
)
def test_any_octets(data, kinds):
    try:
        packet = teleop.decode(data, kinds)
    except TruncatedError as error:
        assert error.offset == error.got == len(data) < error.needed
    except UnknownPacketError as error:
        assert error.offset == 0
    except DecodeError as error:
        assert error.offset in (6, 18, 32) and len(data) > error.offset
    else:
        assert kinds is None or teleop.kind_of(packet) in kinds
        assert teleop.encode(packet) == data
        problems = teleop.check(packet)
        assert problems == sorted(problems)


@settings(max_examples=500, deadline=None)
@given(packet=PACKETS)
def test_any_values_round_trip(packet):
    data = teleop.encode(packet)
    assert teleop.decode(data, {teleop.kind_of(packet)}) == packet
    assert teleop.from_fields(teleop.kind_of(packet), teleop.to_fields(packet)) == packet
    for field in teleop.LABELS:
        if hasattr(packet, field):
            value = getattr(packet, field)
            assert (teleop.label(field, value) == f"unknown({value})") != teleop.is_known(field, value)
