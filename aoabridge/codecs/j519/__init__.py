"""FANUC Stream Motion (option J519): packets, limits, motion guard and both sides of a session. Pure."""

from aoabridge.codecs.j519.dispatch import FROM_ROBOT, TO_ROBOT, decode, encode, packet_name
from aoabridge.codecs.j519.json_form import from_fields, to_fields

__all__ = ["FROM_ROBOT", "TO_ROBOT", "decode", "encode", "from_fields", "packet_name", "to_fields"]
