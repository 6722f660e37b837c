"""Tables of the file's schema that repeat what other layers know, so that reading a file loads none of them."""

from aoabridge.codecs.frc_ds import PROTOCOLS
from aoabridge.config.schema import FRC_PROTOCOLS


def test_the_driver_station_protocols_are_those_of_the_codecs() -> None:
    assert set(FRC_PROTOCOLS) == set(PROTOCOLS)
