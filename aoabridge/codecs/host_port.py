"""A network address as people write it, to a host and a port and back. No name is looked up."""

from aoabridge.errors import DecodeError

__all__ = ["MAX_PORT", "host_of", "join_host_port", "split_host_port"]

MAX_PORT = 0xFFFF  # 16 bits on the wire


def split_host_port(text: str, port: int | None = None) -> tuple[str, int]:
    """Split ``host``, ``host:port``, ``v6``, ``[v6]`` or ``[v6]:port``; a port that is missing or empty is ``port``.

    Brackets are taken off. DecodeError: no host, something after the bracket, a port that is none, or none at all.
    """
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or ":" not in host or (rest and not rest.startswith(":")):
            raise DecodeError(f"{text!r} is not [IPv6 address]:port")
        digits = rest[1:]
    elif text.count(":") == 1:
        host, _, digits = text.partition(":")
    else:
        host, digits = text, ""
    if not host:
        raise DecodeError(f"{text!r} names no host: host or host:port")
    if digits:
        port = _port(digits)
    if port is None:
        raise DecodeError(f"{text!r} names no port: host:port")
    return host, port


def _port(digits: str) -> int:
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= len(str(MAX_PORT))):
        raise DecodeError(f"{digits!r} is no port: 1 to {MAX_PORT}")
    number = int(digits)
    if not 0 < number <= MAX_PORT:
        raise DecodeError(f"{digits!r} is no port: 1 to {MAX_PORT}")
    return number


def join_host_port(host: str, port: int) -> str:
    """The form that ``split_host_port`` reads."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def host_of(text: str) -> str:
    """The host of an address with or without a port, without brackets; a text that is no address as it is."""
    try:
        return split_host_port(text, 0)[0]
    except DecodeError:
        return text
