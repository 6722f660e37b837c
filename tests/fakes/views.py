"""Views for the tests of the snapshot: one healthy bridge, to be varied."""

from typing import Any

import msgspec

from aoabridge.status import ConfigView, PhoneView, RobotView, SnapshotInputs

ROBOT = RobotView(
    "connected", "10.64.58.2:5810", "aoabridge-pi-left@1", 718.0, 1, 412, 550, enabled=True, mode="teleop", match="Q41"
)
SCOUT = PhoneView("scout", "absent", "1-1.3", serial="R9PR307K2Q", model="SM-T500", last_line_age_s=12.1, reconnects=3)
PIXEL = PhoneView("pixel7", "live", "1-1.2", serial="2A211", battery_percent=82, rx_hz=50.0, tx_hz=12.0, latency_ms=4.0)


def inputs(**changes: Any) -> SnapshotInputs:
    base = SnapshotInputs(
        name="pi-left",
        version="1.4.0",
        team=6458,
        wall="2026-03-14T10:12:41Z",
        mono_s=761.2,
        uptime_s=761.2,
        wall_trusted=True,
        robot=ROBOT,
        config=ConfigView("/etc/aoabridge/aoabridge.toml"),
        phones=(PIXEL,),
    )
    return msgspec.structs.replace(base, **changes)
