import pytest

from aoabridge.phone.aoa import UsbDevice
from aoabridge.phone.watch import Cure, Gone, LinkWatch, LossLog, Presence, Returned


def device(devnum: int, *, accessory: bool = False, serial: str = "S") -> UsbDevice:
    vendor, product = (0x18D1, 0x2D00) if accessory else (0x04E8, 0x6860)
    return UsbDevice("1-1", vendor, product, 1, devnum, serial=serial)


def test_an_empty_port_measures_its_gap() -> None:
    presence = Presence()
    (first,) = presence.on_scan(device(5), 10.0)
    assert isinstance(first, Returned)
    assert first.gap_s == float("inf")
    assert presence.on_scan(device(5), 11.0) == []
    assert presence.on_scan(None, 12.0) == [Gone(device(5))]
    assert presence.on_scan(None, 13.0) == []
    assert presence.on_scan(device(6), 14.5) == [Returned(device(6), 2.5, other=False)]


def test_a_new_address_without_a_gap_is_both() -> None:
    presence = Presence()
    presence.on_scan(device(5), 10.0)
    assert presence.on_scan(device(6), 11.0) == [Gone(device(5)), Returned(device(6), 0.0, other=False)]


def test_a_lost_device_is_not_believed_for_a_second() -> None:
    presence = Presence()
    presence.on_scan(device(5), 10.0)
    assert presence.on_lost((1, 5), 11.0) == [Gone(device(5))]
    assert presence.on_lost((1, 5), 11.1) == []
    assert presence.on_scan(device(5), 11.5) == []
    assert presence.on_scan(device(5), 15.0) == [Returned(device(5), 0.0, other=False)]  # it never left


@pytest.mark.parametrize(("after_s", "believed"), [(0.99, 0), (1.0, 1)])
def test_a_scan_that_still_shows_a_lost_device_is_out_of_date_for_a_second(after_s: float, believed: int) -> None:
    presence = Presence()
    presence.on_scan(device(5), 10.0)
    presence.on_lost((1, 5), 11.0)
    assert len(presence.on_scan(device(5), 11.0 + after_s)) == believed


def test_another_enumeration_is_believed_at_once() -> None:
    presence = Presence()
    presence.on_scan(device(5), 10.0)
    presence.on_lost((1, 5), 11.0)
    assert len(presence.on_scan(device(6), 11.1)) == 1


def test_another_serial_is_another_device_unless_the_mode_changed() -> None:
    presence = Presence()
    presence.on_scan(device(5, serial="A"), 10.0)
    assert presence.on_scan(device(6, serial="B"), 11.0)[1] == Returned(device(6, serial="B"), 0.0, other=True)
    assert presence.on_scan(device(7, accessory=True, serial="C"), 12.0)[1] == Returned(
        device(7, accessory=True, serial="C"), 0.0, other=False
    )


def test_cures_come_once_each_and_in_order() -> None:
    watch = LinkWatch()
    watch.on_open(1, 100.0)
    assert watch.take_cure(102.9, may_reset=False) is None
    assert watch.deadline(may_reset=False) == 103.0
    assert watch.take_cure(103.0, may_reset=False) is Cure.CLEAR_HALTS
    assert watch.deadline(may_reset=False) == 106.0
    assert watch.take_cure(106.0, may_reset=False) is Cure.REOPEN
    assert watch.take_cure(9999.0, may_reset=False) is None
    assert watch.deadline(may_reset=False) is None
    assert watch.take_cure(115.0, may_reset=True) is Cure.RESET


def test_accepted_bytes_put_the_reset_off() -> None:
    watch = LinkWatch()
    watch.on_open(1, 100.0)
    watch.on_accepted(140.0)
    assert watch.take_cure(154.9, may_reset=True) is None
    assert watch.take_cure(155.0, may_reset=True) is Cure.RESET
    watch.on_reset(155.0)
    watch.on_open(1, 160.0)
    watch.on_accepted(161.0)
    assert watch.deadline(may_reset=True) == 455.0


def test_received_bytes_keep_the_candidate() -> None:
    watch = LinkWatch()
    watch.on_open(2, 100.0)
    watch.on_received()
    watch.take_cure(103.0, may_reset=False)
    assert watch.take_cure(200.0, may_reset=False) is None
    assert watch.turn == 0


def test_trying_candidates_does_not_put_the_reset_off() -> None:
    watch = LinkWatch()
    watch.on_open(2, 100.0)
    watch.on_open(2, 105.0, next_candidate=True)
    watch.on_open(2, 110.0, next_candidate=True)
    assert watch.take_cure(115.0, may_reset=True) is Cure.RESET


def test_three_losses_in_a_minute() -> None:
    log = LossLog()
    for now in (0.0, 40.0, 70.0):
        log.on_loss(now)
        assert not log.is_flapping(now, stable=False)
    log.on_loss(99.0)
    assert log.is_flapping(99.0, stable=False)
    assert log.is_flapping(398.0, stable=False)
    assert not log.is_flapping(399.0, stable=False)


def test_a_stable_link_ends_flapping() -> None:
    log = LossLog()
    for now in (0.0, 1.0, 2.0):
        log.on_loss(now)
    assert not log.is_flapping(70.0, stable=True)
    log.on_loss(71.0)
    assert not log.is_flapping(71.0, stable=False)
