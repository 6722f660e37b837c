"""The emulated phone behaves as Android does: what the rig's verdicts rest on."""

import json

import pytest

from fakes.clock import VirtualClock
from fakes.phone import PENDING, STALL, Phone, Profile, Transfer

STRINGS = ("NTOverAOA", "Adapter", "NetworkTables bridge", "1.2", "https://example.org", "serial")


class Wire:
    def __init__(self):
        self.log = []

    def attached(self, phone):
        self.log.append(("attached", phone.mode, phone.port))

    def detached(self, phone):
        self.log.append(("detached", None, phone.port))

    def configured(self, phone):
        self.log.append(("configured", phone.mode, phone.port))


@pytest.fixture
def clock():
    return VirtualClock()


def make(clock, **switches):
    phone = Phone(Profile.from_case(switches), clock, Wire())
    phone.plug()
    return phone


def accessory(clock, **switches):
    phone = make(clock, start_as="accessory", **switches)
    assert phone.claim(0, "host") == 0
    return phone


def handshake(phone, strings=STRINGS):
    assert phone.control(0xC0, 51, 0, 0, 2) == b"\x02\x00"
    for index, text in enumerate(strings):
        assert phone.control(0x40, 52, 0, index, len(text) + 1, data=text.encode() + b"\0") == b""
    return phone.control(0x40, 53, 0, 0, 0)


def out(phone, data, zero_packet=False):
    transfer = Transfer(0x01, data=data, zero_packet=zero_packet)
    phone.submit(transfer)
    return transfer


def read(phone, length=16384):
    transfer = Transfer(0x81, length=length)
    phone.submit(transfer)
    return transfer


def test_handshake_switches_to_the_accessory_under_a_new_attachment(clock):
    phone = make(clock)
    assert handshake(phone) == b""
    assert phone.mode == "native"
    clock.run_until(clock.now() + 0.02)
    assert phone.mode is None
    clock.run_until(clock.now() + 0.3)
    assert phone.mode == "accessory"
    assert phone.view.device[8:12] == bytes.fromhex("d118002d")


def test_start_is_ignored_without_the_needed_strings(clock):
    phone = make(clock, needs_strings=[0, 1, 2, 3, 4, 5])
    handshake(phone, STRINGS[:5])
    clock.run_until(clock.now() + 5)
    assert phone.mode == "native"


def test_get_protocol_forgets_the_strings(clock):
    phone = make(clock)
    for index, text in enumerate(STRINGS):
        phone.control(0x40, 52, 0, index, len(text), data=text.encode())
    phone.control(0xC0, 51, 0, 0, 2)
    phone.control(0x40, 53, 0, 0, 0)
    clock.run_until(clock.now() + 5)
    assert phone.mode == "native"


def test_strict_rules_stall_malformed_requests(clock):
    phone = make(clock, rules="functionfs")
    assert phone.control(0xC0, 51, 0, 0, 4) == STALL
    assert phone.control(0x40, 52, 0, 0, 0, data=b"") == STALL
    assert phone.control(0x40, 52, 0, 6, 2, data=b"x\0") == STALL
    assert phone.control(0x40, 52, 0, 0, 257, data=b"x" * 257) == STALL
    assert phone.control(0x40, 53, 1, 0, 0) == STALL
    assert phone.metrics()["stalls"] == 5


def test_descriptors_and_strings(clock):
    phone = make(clock)
    assert len(phone.control(0x80, 6, 0x0100, 0, 18)) == 18
    configuration = phone.control(0x80, 6, 0x0200, 0, 255)
    assert configuration[2] == len(configuration)
    assert phone.control(0x80, 6, 0x0300, 0, 255) == bytes((4, 3, 9, 4))
    assert phone.control(0x80, 6, 0x0303, 0x0409, 255)[2:].decode("utf-16-le").startswith("R58N")
    assert phone.control(0xC0, 99, 0, 0, 2) == STALL
    assert make(clock, serial_string="stall").control(0x80, 6, 0x0303, 0x0409, 255) == STALL


def test_native_appearances_come_before_the_accessory(clock):
    phone = make(clock, native_again=2, switch_s=1.0, accessory_at="2-1")
    handshake(phone)
    clock.run_until(clock.now() + 2)
    assert [entry[1:] for entry in phone.wire.log if entry[0] == "attached"] == [
        ("native", "1-1"),
        ("native", "1-1"),
        ("native", "1-1"),
        ("accessory", "2-1"),
    ]


def test_kernel_phone_naks_while_the_app_does_not_read(clock):
    phone = accessory(clock, app="closed")
    transfer = out(phone, b'{"topics":[]}\n')
    assert transfer.status is PENDING
    phone.cancel(transfer)
    assert (transfer.status, transfer.moved) == (-2, 0)


def test_userspace_phone_accepts_into_its_buffer_until_that_is_full(clock):
    phone = accessory(clock, app="known", data_path="userspace")
    phone.app.stop_reading()
    out(phone, b"x\n")  # the read in flight takes this one
    assert all(out(phone, b"y" * 16383).status == 0 for _ in range(15))
    last = [out(phone, b"y" * 16383) for _ in range(2)]
    assert last[-1].status is PENDING


def test_line_of_whole_packets_is_invisible_until_more_data_or_a_zlp(clock):
    phone = accessory(clock)
    line = json.dumps({"topics": ["x" * 400]}).encode().ljust(511) + b"\n"
    assert out(phone, line).status == 0
    assert phone.app.log.topic_lists == []
    out(phone, b"", zero_packet=True)
    assert len(phone.app.log.topic_lists) == 1
    assert out(phone, line).status == 0
    out(phone, b"\n")
    assert len(phone.app.log.topic_lists) == 2
    out(phone, line, zero_packet=True)
    assert len(phone.app.log.topic_lists) == 3
    assert phone.metrics()["zlp_out"] == 2


def test_small_read_buffer_loses_the_tail_of_a_transfer(clock):
    phone = accessory(clock, read_buffer=100)
    out(phone, b'{"topics":["' + b"x" * 400 + b'"]}\n')
    out(phone, b'\n{"topics":[]}\n')
    assert len(phone.app.log.topic_lists) == 1
    assert phone.metrics()["lines_corrupt"] == 1


def test_in_request_ends_at_a_short_packet_or_a_zlp(clock):
    phone = accessory(clock, app="silent")
    phone.app.write(b"a" * 700)
    phone.app.write(b"b" * 1024)
    phone.app.write(b"c" * 16384)
    assert bytes(read(phone).buffer) == b"a" * 700
    assert bytes(read(phone).buffer) == b"b" * 1024
    first, second = read(phone), read(phone)
    assert (len(first.buffer), first.status, len(second.buffer), second.status) == (16384, 0, 0, 0)


def test_without_zlp_whole_packets_wait_for_the_timeout(clock):
    phone = accessory(clock, app="silent", zlp="never")
    phone.app.write(b"b" * 1024)
    transfer = read(phone)
    assert transfer.status is PENDING
    phone.cancel(transfer)
    assert bytes(transfer.buffer) == b"b" * 1024


def test_read_that_is_no_multiple_of_the_packet_size_babbles(clock):
    phone = accessory(clock, app="silent")
    phone.app.write(b"b" * 512)
    transfer = read(phone, 100)
    assert (transfer.status, len(transfer.buffer)) == (-75, 100)
    assert phone.metrics()["overflow"] == 1


def test_app_write_blocks_when_four_requests_wait(clock):
    phone = accessory(clock, app="silent")
    done = []
    for index in range(6):
        phone.app.write(b"%d" % index, lambda index=index: done.append(index))
    assert done == [0, 1, 2, 3]
    clock.run_until(clock.now() + 0.5)
    read(phone)
    assert done == [0, 1, 2, 3, 4]
    assert phone.metrics()["app_write_block_ms"] == pytest.approx(500)


def test_app_restart_subscribes_and_drops_what_its_read_held(clock):
    phone = accessory(clock)
    out(phone, b"x" * 512)
    phone.app.restart(gap_s=1.0)
    assert out(phone, b"{}\n").status is PENDING
    clock.run_until(clock.now() + 1.1)
    assert bytes(read(phone).buffer) == b'{"subscribe":["/FMSInfo/IsRedAlliance","/bench/"]}\n'
    clock.run_until(clock.now() + 1.0)
    assert bytes(read(phone).buffer) == b'{"subscribe":["/robot/pose"]}\n'


def test_stuck_reader_keeps_the_node_until_a_byte_arrives(clock):
    phone = accessory(clock, stuck_reader=True)
    phone.app.restart(gap_s=0.1)
    clock.run_until(clock.now() + 3)
    assert not phone.app.open
    assert out(phone, b"\n").status == 0
    clock.run_until(clock.now() + 1)
    assert phone.app.open


def test_stale_request_is_read_again_after_a_restart(clock):
    phone = accessory(clock, stale_request=True)
    out(phone, b'{"topics":["/old"]}\n')
    phone.app.restart(gap_s=0.1)
    clock.run_until(clock.now() + 0.2)
    assert len(phone.app.log.topic_lists) == 2


def test_known_app_reopens_on_disconnect_and_on_silence(clock):
    phone = accessory(clock)
    out(phone, b'{"disconnect":true}\n')
    assert not phone.app.open
    clock.run_until(clock.now() + 0.6)
    assert phone.app.open
    clock.run_until(clock.now() + 11)
    assert phone.app.open
    clock.run_until(clock.now() + 1.2)
    assert not phone.app.open
    assert phone.metrics()["disconnect_lines"] == 1


def test_new_android_leaves_accessory_mode_when_the_app_closes(clock):
    phone = accessory(clock, on_app_close="leave", leave_ms=200)
    phone.app.close()
    clock.run_until(clock.now() + 0.25)
    assert phone.mode is None
    clock.run_until(clock.now() + 0.5)
    assert phone.mode == "native"


def test_halted_endpoint_stalls_until_cleared_as_often_as_said(clock):
    phone = accessory(clock, halt={"endpoint": "out", "times": 1}, app="silent")
    phone.app.write(b"x\n")
    read(phone)
    assert out(phone, b"\n").status == 0
    clock.run_until(clock.now() + 1.1)
    assert out(phone, b"\n").status == STALL
    assert out(phone, b"\n").status == STALL
    phone.clear_halt(0x01)
    assert out(phone, b"\n").status == 0
    assert out(phone, b"\n").status == 0


@pytest.mark.parametrize("how", ["clear_halt", "reset"])
def test_dead_out_endpoint_revives(clock, how):
    phone = accessory(clock, out_dead_until=how, on_reset="stay")
    transfer = out(phone, b"\n")
    assert transfer.status is PENDING
    if how == "clear_halt":
        phone.clear_halt(0x01)
    else:
        phone.reset()
    assert transfer.status == 0


def test_split_transfer_accepts_k_bytes_then_naks(clock):
    phone = accessory(clock)
    phone.function.out.split_transfers(0.7, iter([3, 0, 100]))
    first = out(phone, b"abcdef\n")
    assert (first.moved, first.status) == (3, PENDING)
    phone.cancel(first)
    clock.run_until(clock.now() + 0.8)
    second = out(phone, b"def\n")
    assert second.moved == 0
    clock.run_until(clock.now() + 0.8)
    assert second.status == 0
    assert out(phone, b"x\n").status == 0


def test_accessory_that_leaves_by_itself(clock):
    phone = make(clock, start_as="accessory", accessory_life_s=2, life_times=1, then="absent:4")
    clock.run_until(clock.now() + 2.1)
    assert phone.mode is None
    clock.run_until(clock.now() + 4.1)
    assert phone.mode == "native"


def test_unplug_ends_every_transfer(clock):
    phone = accessory(clock, app="closed")
    transfers = [out(phone, b"\n"), read(phone)]
    phone.unplug()
    assert [transfer.status for transfer in transfers] == [-108, -108]
    late = read(phone)
    assert late.status == -108


def test_unplug_after_some_bytes_of_a_write(clock):
    phone = accessory(clock)
    phone.unplug_at("write", 4)
    transfer = out(phone, b"abcdefgh\n")
    assert transfer.status == -108
    assert phone.mode is None


def test_first_line_of_a_new_link_is_judged(clock):
    phone = accessory(clock)
    out(phone, b'{"topics":["/a",')
    phone.release(0, "host")
    phone.claim(0, "again")
    out(phone, b'\n{"topics":[]}\n')
    metrics = phone.metrics()
    assert metrics["app_first_full_line_ok"] is True
    assert metrics["lines_corrupt"] == 1
    phone.claim(0, "again")
    out(phone, b'{"half":')
    phone.claim(0, "again")
    out(phone, b'{"topics":[]}\n')
    assert phone.metrics()["app_first_full_line_ok"] is False


def test_hello_app_answers_pings_unless_muted(clock):
    phone = make(clock, start_as="native", app="hello")
    handshake(phone)
    clock.run_until(clock.now() + 0.5)
    phone.claim(0, "host")
    assert b'"action":"hello"' in bytes(read(phone).buffer)
    read(phone)
    out(phone, b'{"ping":7}\n')
    assert bytes(read(phone).buffer) == b'{"action":"pong","id":7}\n'
    phone.app.muted = True
    out(phone, b'{"ping":8}\n')
    assert read(phone).status is PENDING


def test_script_traffic_is_exact(clock):
    phone = accessory(clock, app="silent")
    phone.app.app_bytes([1, 511, 512, 513, 1024], repeat=3)
    sizes = []
    data = b""
    while phone.app.busy:
        clock.run_until(clock.now() + 0.001)
        transfer = read(phone)
        sizes.append(len(transfer.buffer))
        data += bytes(transfer.buffer)
        if transfer.status is PENDING:
            phone.cancel(transfer)
    assert [size for size in sizes if size] == [1, 511, 512, 513, 1024] * 3
    lines = [json.loads(line) for line in data.split(b"\n") if line]
    assert [line["value"] for line in lines] == [entry[0] for entry in phone.metrics()["sent"].values()]


def test_unknown_switch_is_refused():
    with pytest.raises(ValueError, match="colour"):
        Profile.from_case({"colour": "red"})
