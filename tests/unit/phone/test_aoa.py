import pytest

from aoabridge.errors import ConfigError
from aoabridge.phone.aoa import (
    Candidate,
    Identity,
    UsbDevice,
    accessory_candidates,
    derived_serial,
    handshake,
    parse_protocol,
    string_fault,
)

BULK_IN, BULK_OUT = (0x81, 2, 512), (0x01, 2, 512)


def candidate(
    number: int, text: str = "", endpoints: tuple[tuple[int, int, int], ...] = (BULK_IN, BULK_OUT)
) -> Candidate:
    return Candidate(number, 0xFF, 0xFF, 0, endpoints, text)


def test_the_handshake_is_protocol_then_six_strings_then_start() -> None:
    requests = handshake(Identity().strings("machine"))
    assert [(r.request_type, r.request, r.value, r.index) for r in requests] == [
        (0xC0, 51, 0, 0),
        *((0x40, 52, 0, index) for index in range(6)),
        (0x40, 53, 0, 0),
    ]
    assert requests[0].length == 2
    assert requests[0].is_in
    assert requests[1].data == b"NTOverAOA\0"
    assert requests[4].data == b"1.2\0"
    assert requests[-1].data == b""
    assert all(2 <= len(r.data) <= 256 for r in requests[1:-1])
    assert [r.step for r in requests] == ["get_protocol", *(f"send_string:{i}" for i in range(6)), "start"]


def test_empty_optional_strings_become_the_built_in_ones() -> None:
    strings = Identity(description="", uri="", serial="").strings("machine")
    assert strings[2] == "NetworkTables bridge"
    assert strings[4] == "https://github.com/FRC2207/RoboRoute"
    assert strings[5] == derived_serial("machine")
    assert all(strings)


def test_the_derived_serial_is_stable_and_does_not_show_the_machine_id() -> None:
    assert derived_serial("abc") == derived_serial("abc\n")
    assert derived_serial("abc") != derived_serial("abd")
    assert "abc" not in derived_serial("abc").lower()


@pytest.mark.parametrize("field", ["manufacturer", "model", "version", "description", "uri", "serial"])
@pytest.mark.parametrize("value", ["d" * 256, "é" * 128, "a\0b", "a\nb", "a\x7f", "\ud800"])
def test_a_string_android_would_not_take_names_its_key(field: str, value: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Identity(**{field: value})
    assert caught.value.key == f"phone.{field}"


@pytest.mark.parametrize("field", ["manufacturer", "model", "version"])
def test_what_apps_match_on_must_not_be_empty(field: str) -> None:
    with pytest.raises(ConfigError, match=f"phone.{field}"):
        Identity(**{field: ""})


def test_255_bytes_are_possible() -> None:
    assert string_fault("d" * 255, required=True) is None
    assert len(handshake(Identity(description="d" * 255).strings())[3].data) == 256


@pytest.mark.parametrize(
    ("reply", "version"),
    [
        ("0100", 1),
        ("0200", 2),
        ("0300", 3),
        ("0201", 258),
        ("0001", 256),
        ("0000", 0),
        ("", 0),
        ("01", 0),
        ("010000", 0),
    ],
)
def test_the_version_is_16_bit_little_endian(reply: str, version: int) -> None:
    assert parse_protocol(bytes.fromhex(reply)) == version


def test_only_the_shape_of_the_accessory_fits() -> None:
    bulk_in2 = (0x82, 2, 512)
    interrupt = (0x83, 3, 64)
    assert candidate(0).fits
    assert candidate(0, endpoints=(BULK_OUT, BULK_IN, interrupt)).fits
    assert not candidate(0, endpoints=(BULK_IN,)).fits
    assert not candidate(0, endpoints=(BULK_IN, bulk_in2, BULK_OUT)).fits
    assert not candidate(0, endpoints=(BULK_IN, (0x01, 3, 512))).fits
    assert not Candidate(0, 0xFF, 0x42, 1, (BULK_IN, BULK_OUT)).fits


def test_the_name_chooses_among_equal_interfaces() -> None:
    control, accessory = candidate(0, "Android Control Interface"), candidate(1, "Android Accessory Interface")
    assert accessory_candidates([control, accessory]) == (accessory,)
    assert accessory_candidates([candidate(1), candidate(0)]) == (candidate(0), candidate(1))
    assert accessory_candidates([control]) == ()
    assert accessory_candidates([candidate(2), accessory]) == (accessory,)
    assert accessory_candidates([control, candidate(2)]) == (candidate(2),)


@pytest.mark.parametrize(
    ("product", "accessory", "audio"),
    [(0x2D00, True, False), (0x2D01, True, False), (0x2D02, False, True), (0x2D03, False, True), (0x2D04, True, False),
     (0x2D05, True, False), (0x4EE1, False, False)],
)  # fmt: skip
def test_accessory_ids(product: int, accessory: bool, audio: bool) -> None:
    device = UsbDevice("1-1", 0x18D1, product, 1, 5)
    assert (device.is_accessory, device.is_audio_accessory) == (accessory, audio)
    assert not UsbDevice("1-1", 0x04E8, product, 1, 5).is_accessory
