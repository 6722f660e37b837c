"""Run inside a network namespace that has nothing but 127.0.0.1: see test_nt_connection."""

from aoabridge.adapters.nt_targets import has_address
from rig.nt_loop import NtLoop
from rig.nt_process import free_port


def main() -> None:
    assert not has_address()
    with NtLoop(embedded=True, port=free_port()) as bridge:
        bridge.until_online()
        assert bridge.code("/x", "int", 1) is None
    print("no address, embedded works")


main()
