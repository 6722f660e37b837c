"""Topic names as a phone spells them, and the one form they are kept in.

A key has exactly one leading slash and no doubled ones; a trailing slash means the subtree.
"""

from collections.abc import Iterator

from aoabridge.errors import LinkError

__all__ = ["MAX_KEY_BYTES", "is_reserved", "key_of", "normalise_key", "parents", "put_key"]

MAX_KEY_BYTES = 1024  # ntcore has no limit; dashboards and logs do not cope with more


def normalise_key(text: str) -> str:
    """Return the key for what a phone wrote; one that ends in ``/`` names a subtree.

    Raises LinkError ``bad-key`` (empty, too long, control characters) or ``forbidden`` (``$…``).
    """
    written = text.strip(" ")
    if not written:
        raise LinkError("the key is empty", "bad-key")
    if any(char < " " or "\x7f" <= char <= "\x9f" for char in written):
        raise LinkError("the key has a control character", "bad-key")
    parts = [part for part in written.split("/") if part]
    key = "/" + "/".join(parts)
    if parts and written.endswith("/"):
        key += "/"
    try:
        size = len(key.encode())
    except UnicodeEncodeError as error:
        raise LinkError("the key has a lone surrogate", "bad-key") from error
    if size > MAX_KEY_BYTES:
        raise LinkError(f"the key has {size} bytes, the limit is {MAX_KEY_BYTES}", "bad-key")
    if key.startswith("/$"):
        raise LinkError("names that begin with $ belong to the server", "forbidden", topic=key)
    return key


def put_key(text: str) -> str:
    """Return the key of one topic, without a trailing slash; raises as ``normalise_key``."""
    key = normalise_key(text).removesuffix("/")
    if not key:
        raise LinkError("the key names no topic", "bad-key")
    return key


def key_of(topic: str) -> str:
    """Return the key under which phones see an NT topic name."""
    return topic if topic.startswith("/") else "/" + topic


def parents(key: str) -> Iterator[str]:
    """Every subtree that a key is in, the longest first."""
    end = len(key)
    while (end := key.rfind("/", 0, end)) >= 0:
        yield key[: end + 1]


def is_reserved(key: str) -> bool:
    """True for names that no phone may read or write: ``$…`` and everything below a ``.schema``."""
    return key.startswith("/$") or "/.schema/" in key
