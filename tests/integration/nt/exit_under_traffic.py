"""A bridge in traffic both ways that ends as told: ``close``, ``forget`` (no close), ``raise``; see test_nt_exit."""

import sys
import time

from rig.nt_loop import NtLoop


def main(address: str, how: str) -> None:
    loop = NtLoop(address)
    loop.client.open()
    loop.until_online()
    loop.until(lambda: len(loop.values("/s/0")) > 20)
    for value in range(200):
        loop.put("/RoboRoute/RunPose", "boolean", True)
        loop.put("/up", "int", value)
        loop.publish("/AOABridge/x/n", "int", value)
        loop.turn(0.001)
    loop.until(lambda: len(loop.results) >= 100)
    loop.put("/up", "int", -1)
    print(repr(time.monotonic()), flush=True)
    if how == "close":
        loop.client.close()
        loop.client.close()
    elif how == "raise":
        raise SystemExit(3)


main(*sys.argv[1:])
