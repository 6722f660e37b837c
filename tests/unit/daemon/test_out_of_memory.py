"""Without memory anything may be half done: the process ends, and the next one begins with a clean state."""

import subprocess
import sys

import pytest

BEGIN = """
import asyncio
from aoabridge.adapters.nt import NtClient, NtSettings
from aoabridge.adapters.nt_events import EventReader, OwnValues
from aoabridge.adapters.nt_poller import Poller
from aoabridge.bridge.core import BridgeCore, CoreSettings
from aoabridge.daemon.phones import PhoneHost
from aoabridge.daemon.relay import Relay
from aoabridge.daemon.run import watch_defects
from aoabridge.daemon.sources import SourceHost
from aoabridge.sources.frc import FrcSettings, FrcSource

def fail(*arguments):
    raise {error}("no room")

class Queue:
    read = fail
    def wait(self, timeout_s):
        pass

async def main():
    watch_defects(asyncio.get_running_loop())
    relay = Relay(BridgeCore(CoreSettings()), NtClient(NtSettings("test"), wake=lambda: None))
"""
END = """
    await asyncio.sleep(1)
    import os
    os._exit(0)

asyncio.run(main())
"""
PLACES = {
    "a turn of the relay": "relay.on_turn = fail; relay.turn_soon()",
    "a turn of a source": "s = FrcSource(FrcSettings(), 'b'); s.on_tick = fail; SourceHost('s', s, relay)._turn_soon()",
    "a turn of the ports": "h = PhoneHost(None, None, None); h._look = fail; relay._loop.call_soon(h._turn)",
    "the thread of NetworkTables": "Poller(Queue(), EventReader(OwnValues(), lambda: 0), print).start()",
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("error", "status"), [("MemoryError", 70), ("ValueError", 0)])
def test_the_process_ends_only_for_want_of_memory(place, error, status):
    program = BEGIN.replace("{error}", error) + "    " + PLACES[place] + END
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == status, done.stderr
    assert "no room" in done.stderr
