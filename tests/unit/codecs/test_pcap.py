import io
import socket
import struct

import dpkt
import pytest

from aoabridge.codecs.pcap import Capture, Datagram, StreamData
from aoabridge.errors import DecodeError, TruncatedError


def ipv4(payload, protocol, src="10.0.0.1", dst="10.0.0.2", **more):
    return bytes(dpkt.ip.IP(src=socket.inet_aton(src), dst=socket.inet_aton(dst), p=protocol, data=payload, **more))


def udp4(data=b"hello", sport=1160, dport=1121, **more):
    return ipv4(dpkt.udp.UDP(sport=sport, dport=dport, data=data, ulen=8 + len(data)), 17, **more)


def tcp4(data=b"", seq=1000, flags=0x10, sport=5000, dport=1750, **more):
    return ipv4(dpkt.tcp.TCP(sport=sport, dport=dport, seq=seq & 0xFFFFFFFF, flags=flags, data=data), 6, **more)


def udp6(data=b"six", src="fe80::1:0:0:2", dst="::1"):
    body = dpkt.udp.UDP(sport=1, dport=1121, data=data, ulen=8 + len(data))
    packet = dpkt.ip6.IP6(
        src=socket.inet_pton(socket.AF_INET6, src), dst=socket.inet_pton(socket.AF_INET6, dst), nxt=17, data=body
    )
    packet.plen = len(bytes(body))
    return bytes(packet)


def ethernet(packet, kind=0x0800, tags=b""):
    return b"\x02" * 6 + b"\x04" * 6 + tags + struct.pack(">H", kind) + packet


def pcap(frames, *, link=1, order="<", nano=False, times=None, snap=65535):
    magic = 0xA1B23C4D if nano else 0xA1B2C3D4
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, snap, link)
    for index, frame in enumerate(frames):
        seconds, ticks = (times or {}).get(index, (100 + index, 500))
        kept = frame[:snap]
        out += struct.pack(order + "IIII", seconds, ticks, len(kept), len(frame)) + kept
    return out


def block(order, kind, body):
    body += bytes(-len(body) % 4)
    length = len(body) + 12
    return struct.pack(order + "II", kind, length) + body + struct.pack(order + "I", length)


def section(order):
    return block(order, 0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))


def enhanced(order, frame, ticks, interface=0):
    return block(
        order,
        6,
        struct.pack(order + "IIIII", interface, ticks >> 32, ticks & 0xFFFFFFFF, len(frame), len(frame)) + frame,
    )


def datagrams(data, **more):
    return [item for item in Capture(data, **more).packets() if isinstance(item, Datagram)]


def streams(data):
    out, ended = {}, []
    capture = Capture(data)
    for item in capture.packets():
        assert isinstance(item, StreamData)
        if item.end:
            ended.append(item.stream)
        else:
            out[item.stream] = out.get(item.stream, b"") + item.data
    return out, ended, capture


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("nano", [False, True])
def test_classic_files_of_both_orders_and_resolutions(order, nano):
    (found,) = datagrams(pcap([ethernet(udp4())], order=order, nano=nano, times={0: (7, 250_000)}))
    assert found.data == b"hello"
    assert (found.src, found.dst) == (("10.0.0.1", 1160), ("10.0.0.2", 1121))
    assert found.frame == 1
    assert found.time_s == pytest.approx(7.00025 if nano else 7.25, abs=1e-9)


@pytest.mark.parametrize(
    ("link", "frame"),
    [
        (1, ethernet(udp4())),
        (1, ethernet(udp4(), tags=b"\x81\x00\x00\x05")),
        (1, ethernet(udp4(), tags=b"\x88\xa8\x00\x05\x81\x00\x00\x06")),
        (101, udp4()),
        (12, udp4()),
        (228, udp4()),
        (0, b"\x02\x00\x00\x00" + udp4()),
        (0, b"\x00\x00\x00\x02" + udp4()),
        (108, b"\x00\x00\x00\x02" + udp4()),
        (113, bytes(14) + b"\x08\x00" + udp4()),
        (276, b"\x08\x00" + bytes(18) + udp4()),
    ],
)
def test_link_layers(link, frame):
    assert [item.data for item in datagrams(pcap([frame], link=link))] == [b"hello"]


def test_ipv6_and_its_text():
    frames = [ethernet(udp6(), 0x86DD), ethernet(udp6(src="2001:db8:0:0:1:0:0:1"), 0x86DD)]
    first, second = datagrams(pcap(frames))
    assert first.data == b"six"
    assert first.src == ("fe80::1:0:0:2", 1)
    assert first.dst == ("::1", 1121)
    assert second.src[0] == "2001:db8::1:0:0:1"


def test_ipv6_hop_by_hop_header_is_skipped():
    packet = bytearray(udp6())
    extended = (
        packet[:4]
        + struct.pack(">H", len(packet) - 40 + 8)
        + b"\x00"
        + packet[7:40]
        + b"\x11\x00"
        + bytes(6)
        + packet[40:]
    )
    assert [item.data for item in datagrams(pcap([bytes(extended)], link=101))] == [b"six"]


def test_what_is_not_ip_or_not_asked_for_is_left_out():
    frames = [
        ethernet(b"\x00" * 40, 0x0806),
        ethernet(udp4(dport=9)),
        ethernet(udp4(data=b"x", dport=1110)),
        b"",
        b"\x01",
    ]
    assert [item.data for item in datagrams(pcap(frames), ports={1110})] == [b"x"]
    assert datagrams(pcap([b"\x45" * 40], link=147)) == []


def test_ethernet_padding_is_no_payload():
    assert datagrams(pcap([ethernet(udp4(b"a") + bytes(30))]))[0].data == b"a"


def test_fragments_and_cut_datagrams_are_counted_not_invented():
    behind = bytearray(udp4())
    behind[7] = 1
    flagged = bytearray(udp4())
    flagged[6] = 0x20
    capture = Capture(pcap([ethernet(bytes(behind)), ethernet(bytes(flagged)), ethernet(udp4(b"y" * 100))], snap=60))
    assert list(capture.packets()) == []
    assert (capture.fragments, capture.cut_packets) == (2, 1)


def test_records_come_in_order_of_time():
    frames = [ethernet(udp4(bytes([65 + index]))) for index in range(3)]
    found = datagrams(pcap(frames, times={0: (30, 0), 1: (10, 0), 2: (20, 0)}))
    assert [(item.data, item.frame) for item in found] == [(b"B", 2), (b"C", 3), (b"A", 1)]


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng(order):
    frame = ethernet(udp4())
    interface = block(order, 1, struct.pack(order + "HHI", 1, 0, 0))
    nano = block(
        order,
        1,
        struct.pack(order + "HHI", 101, 0, 0)
        + struct.pack(order + "HHB3x", 9, 1, 9)
        + struct.pack(order + "HHq", 14, 8, 50)
        + bytes(4),
    )
    binary = block(order, 1, struct.pack(order + "HHI", 1, 0, 0) + struct.pack(order + "HHB3x", 9, 1, 0x81))
    data = section(order) + interface + enhanced(order, frame, 2_500_000)
    data += block(order, 5, bytes(12))  # statistics: not looked at
    data += nano + binary + enhanced(order, udp4(b"raw"), 3_000_000_001, 1) + enhanced(order, frame, 3, 2)
    found = datagrams(data)
    assert [(item.data, item.time_s) for item in found] == [
        (b"hello", 1.5),
        (b"hello", 2.5),
        (b"raw", pytest.approx(53.000000001)),
    ]


def test_pcapng_simple_and_old_packet_blocks_and_a_second_section():
    frame = ethernet(udp4(b"simple"))
    interface = block("<", 1, struct.pack("<HHI", 1, 0, 0))
    old = block("<", 2, struct.pack("<HHIIII", 0, 0, 0, 9, len(frame), len(frame)) + frame)
    simple = block(">", 3, struct.pack(">I", len(frame)) + frame)
    data = section("<") + interface + old + section(">") + block(">", 1, struct.pack(">HHI", 1, 0, 0)) + simple
    assert [item.data for item in datagrams(data)] == [b"simple", b"simple"]


def test_pcapng_written_by_dpkt():
    target = io.BytesIO()
    writer = dpkt.pcapng.Writer(target)
    writer.writepkt(ethernet(udp4(b"dpkt")), ts=12.5)
    (found,) = datagrams(target.getvalue())
    assert (found.data, found.time_s) == (b"dpkt", 12.5)


def test_tcp_in_any_order_with_retransmissions():
    frames = [
        tcp4(seq=999, flags=0x02),
        tcp4(b"abc", 1000),
        tcp4(b"ghi", 1006),
        tcp4(b"abcd", 1000),  # a longer retransmission
        tcp4(b"", 999, flags=0x10),
        tcp4(b"\0", 999),  # keep-alive probe
        tcp4(b"ef", 1004),
        tcp4(b"j", 1009, flags=0x11),
        tcp4(b"late", 1010),
    ]
    out, ended, capture = streams(pcap(frames, link=101))
    assert out == {1: b"abcdefghij"}
    assert ended == [1]
    assert capture.gaps == 0


def test_both_directions_are_streams_of_their_own_and_a_new_syn_begins_another():
    back = {"sport": 1750, "dport": 5000, "src": "10.0.0.2", "dst": "10.0.0.1"}
    frames = [tcp4(seq=1, flags=2), tcp4(seq=7, flags=0x12, **back), tcp4(b"in", 2), tcp4(b"out", 8, **back)]
    frames += [tcp4(seq=1, flags=2), tcp4(b"+", 4), tcp4(seq=500, flags=2), tcp4(b"new", 501), tcp4(b"", 504, flags=4)]
    out, ended, _ = streams(pcap(frames, link=101))
    assert out == {1: b"in+", 2: b"out", 3: b"new"}
    assert ended == [1, 3, 2]


def test_a_hole_ends_the_stream_and_is_counted():
    frames = [tcp4(seq=9, flags=2), tcp4(b"ab", 10), tcp4(b"lost behind", 20), tcp4(b"", 31, flags=0x11)]
    out, ended, capture = streams(pcap(frames, link=101))
    assert out == {1: b"ab"}
    assert ended == [1]
    assert capture.gaps == 1


def test_sequence_numbers_wrap_and_a_capture_may_begin_in_the_middle():
    frames = [tcp4(b"abcd", 0xFFFFFFFE), tcp4(b"gh", 4), tcp4(b"ef", 2)]
    assert streams(pcap(frames, link=101))[0] == {1: b"abcdefgh"}


def test_a_stream_that_holds_too_much_is_given_up():
    frames = [tcp4(b"a", 0)] + [tcp4(b"z", 10 + 2 * index) for index in range(300)]
    out, ended, capture = streams(pcap(frames, link=101))
    assert (out, ended, capture.gaps) == ({1: b"a"}, [1], 1)


def test_a_file_that_ends_inside_a_record_gives_what_is_complete():
    whole = pcap([ethernet(udp4(b"one")), ethernet(udp4(b"two"))])
    for cut in (len(whole) - 1, len(whole) - len(ethernet(udp4(b"two"))) - 9):
        capture = Capture(whole[:cut])
        assert [item.data for item in capture.packets()] == [b"one"]
        assert isinstance(capture.cut, TruncatedError)
        assert capture.cut.got == cut < capture.cut.needed
    assert Capture(whole).cut is None


@pytest.mark.parametrize("data", [b"", b"\xd4\xc3", pcap([])[:23], section("<")[:10]])
def test_less_than_a_file_header_is_truncated(data):
    with pytest.raises(TruncatedError):
        Capture(data)


@pytest.mark.parametrize(
    "data",
    [
        b"GIF89a" + bytes(40),
        section("<") + enhanced("<", b"", 0),  # no interface described
        section("<")
        + block("<", 1, struct.pack("<HHI", 1, 0, 0))
        + block("<", 6, struct.pack("<IIIII", 0, 0, 0, 99, 99)),
        section("<") + struct.pack("<II", 6, 8) + bytes(8),
        section("<")[:8] + bytes(20),
        section("<") + block("<", 1, b""),
    ],
)
def test_what_cannot_be_is_a_decode_error(data):
    with pytest.raises(DecodeError):
        Capture(data)
