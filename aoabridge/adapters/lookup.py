"""Names of hosts to addresses, off the event loop."""

import asyncio
import contextlib
import ipaddress
import socket
import threading
from typing import TypeAlias

__all__ = ["look_up"]

Address: TypeAlias = tuple[str, int]


async def look_up(host: str, port: int) -> list[Address]:
    """Every address of a host, as numbers, those of IPv4 first: robots speak it; OSError if it has none.

    A name is asked for in a thread that neither the loop nor the end of the process waits for: without an answer the
    resolver takes many seconds.
    """
    if _is_number(host):
        return [(host, port)]
    loop = asyncio.get_running_loop()
    found: asyncio.Future[list[Address]] = loop.create_future()

    def deliver(result: list[Address] | OSError) -> None:
        if found.done():
            return
        if isinstance(result, OSError):
            found.set_exception(result)
        else:
            found.set_result(result)

    def ask() -> None:
        result: list[Address] | OSError
        try:
            rows = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)
            rows.sort(key=lambda row: row[0] != socket.AF_INET)
            result = list(dict.fromkeys((str(name[0]), int(name[1])) for *_, name in rows))
        except OSError as error:
            result = error
        except UnicodeError as error:  # a label of the name is empty or too long
            result = OSError(f"{host!r} is no host name: {error}")
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody wants the answer any more
            loop.call_soon_threadsafe(deliver, result)

    threading.Thread(target=ask, name=f"look-up:{host}", daemon=True).start()
    return await found


def _is_number(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
