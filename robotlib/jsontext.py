"""Plan text to decoded JSON within bounds: encoding, size, nesting, numbers, duplicate keys.

Every check is linear in the text; whatever the text holds, only PlanError leaves.
"""

from __future__ import annotations

import functools
import json
import re
from typing import NoReturn

from .errors import PlanError, clean
from .model import Limits

__all__ = ["decode_text", "load_json"]

_BOM = "\ufeff"
# A string, closed or not. Possessive: backtracking over an unclosed string of escaped quotes would be quadratic.
_STRING = re.compile(r'"(?:[^"\\]+|\\.)*+"?', re.DOTALL)
_BRACKET = re.compile(r"[\[\]{}]")


def decode_text(text: str | bytes | bytearray, limits: Limits) -> str:
    """Return the text as it was received, checked for encoding and size (bad-encoding, too-large)."""
    if not isinstance(text, str):
        try:
            text = bytes(text).decode("utf-8")
        except UnicodeDecodeError:
            utf16 = text[:2] in (b"\xff\xfe", b"\xfe\xff")
            hint = " The file is UTF-16, save it as UTF-8." if utf16 else ""
            raise PlanError("bad-encoding", "$", f"Plan is not valid UTF-8 text.{hint}") from None
    size = len(text)
    if size <= limits.max_bytes and not text.isascii():
        size = len(text.encode("utf-8", "surrogatepass"))
    if size > limits.max_bytes:
        message = f"Plan is {_amount(size, limits)}; the limit is {_amount(limits.max_bytes, limits)}."
        raise PlanError("too-large", "$", message)
    return text


def _amount(size: int, limits: Limits) -> str:
    return f"{size} bytes" if limits.max_bytes % 1024 else f"{-(-size // 1024)} KB"


def load_json(text: str, limits: Limits) -> object:
    """Return the decoded JSON of a text that `decode_text` let pass."""
    text = text.removeprefix(_BOM)
    if not text.strip():
        raise PlanError("empty", "$", "Plan is empty.")
    _check_depth(text, limits)
    try:
        return _decoder(limits, _has_long_number(text, limits)).decode(text)
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise PlanError("bad-json", "$", f"Not valid JSON at {where}.") from None
    except PlanError:
        raise
    except RecursionError:
        raise _too_deep(limits) from None
    except ValueError:  # the interpreter's own bound on digits, reached before a generous one of the caller
        raise _too_long() from None


def _too_long() -> PlanError:
    return PlanError("number-too-long", "$", "A number has too many digits.")


def _too_deep(limits: Limits) -> PlanError:
    return PlanError("too-deep", "$", f"Steps are nested deeper than {limits.max_depth} levels.")


def _check_depth(text: str, limits: Limits) -> None:
    bound = 2 * limits.max_depth + 2  # each step opens an object and an array; a pose on the last level opens two more
    if text.count("[") + text.count("{") <= bound:
        return
    depth = 0
    for bracket in _BRACKET.findall(_STRING.sub("", text)):
        if bracket in "[{":
            depth += 1
            if depth > bound:
                raise _too_deep(limits)
        else:
            depth -= 1


def _has_long_number(text: str, limits: Limits) -> bool:
    return _long_run(limits.max_digits).search(text) is not None


@functools.lru_cache(maxsize=8)
def _long_run(max_digits: int) -> re.Pattern[str]:
    # Possessive: one attempt per run of digits, not one per character.
    return re.compile(rf"[-+.0-9eE]{{{max_digits + 1}}}")


@functools.lru_cache(maxsize=8)
def _decoder(limits: Limits, long_numbers: bool) -> json.JSONDecoder:
    # The number hooks cost a call per number, so texts without a long run of digits go without them.
    def whole(digits: str) -> int:
        if len(digits) > limits.max_digits:
            raise _too_long()
        return int(digits)

    def real(digits: str) -> float:
        if len(digits) > 2 * limits.max_digits:
            raise _too_long()
        return float(digits)

    return json.JSONDecoder(
        object_pairs_hook=_unique_keys,
        parse_constant=_not_finite,
        parse_int=whole if long_numbers else None,
        parse_float=real if long_numbers else None,
    )


def _not_finite(name: str) -> NoReturn:
    raise PlanError("not-finite", "$", f"{name} is not a number that a plan may hold.")


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise PlanError("duplicate-key", "$", f"Field '{clean(key)}' appears twice in one step.")
            seen.add(key)
    return found
