"""Six situations of the pit as snapshots, and one in which every foreign text is hostile."""

from collections.abc import Callable
from typing import Any

from aoabridge.config import Config, default_config
from aoabridge.status import HostView, IssueBoard, PhoneView, RelayView, RobotView, SourceView, build_snapshot
from aoabridge.status.views import ConfigView, SnapshotInputs
from fakes.views import inputs

NOW = 761.2
HOSTILE = "<img src=x onerror=\"document.title='owned'\">"
ROBOT = RobotView(
    "connected", "10.64.58.2:5810", "aoabridge-pi-left@1", 718.0, 1, 412, 550, enabled=True, mode="teleop", match="Q41"
)
PIXEL = PhoneView(
    "pixel7", "live", "1-1.2", serial="2A211FDH300ABC", model="Pixel 7", app="AR", rx_hz=50.0, tx_hz=12.0,
    latency_ms=4.2, last_line_age_s=0.0, battery_percent=82.0, subscriptions=14, since_s=690.0,
)  # fmt: skip
SCOUT = PhoneView(
    "scout", "live", "1-1.3", serial="R9PR307K2Q", model="SM-T500", rx_hz=48.0, tx_hz=12.0, latency_ms=6.0,
    last_line_age_s=0.1, coalesced=88, reconnects=3, since_s=300.0,
)  # fmt: skip
LOST = PhoneView("scout", "absent", "1-1.3", serial="R9PR307K2Q", model="SM-T500", last_line_age_s=12.1, since_s=12.0)
SILENT = PhoneView("pixel7", "linked", "1-1.2", serial="2A211FDH300ABC", model="Pixel 7", since_s=31.0)
HOST = HostView(6.1, 44.0, 52.0, False, 3100, False)
RELAY = RelayView(312, 610.0, 62.0, {"forbidden": 2}, 88, 0, 2, 0)
TELEOP = SourceView("teleop", "main", True, 50.0, 0.02)


class Scenario:
    """One situation: the views, and the issues that are open in it."""

    def __init__(self, verdict: str, views: SnapshotInputs, *issues: tuple[str, str, dict[str, object]]) -> None:
        self.verdict = verdict
        self.views = views
        self.board = IssueBoard()
        for number, (code, subject, data) in enumerate(issues):
            self.board.set(code, subject, active=True, now=NOW - 12 - number, data=data, hold=False)

    def snapshot(self) -> dict[str, Any]:
        return build_snapshot(self.views, self.board.open_issues())

    def view(self) -> dict[str, Any]:
        """The snapshot with what the page adds to it."""
        snapshot = self.snapshot()
        phones = [{**phone, "flow": flow(phone)} for phone in snapshot["phones"]]
        return {**snapshot, "phones": phones, "watched": watched(self.views)}


def flow(phone: dict[str, Any]) -> str:
    if phone["state"] == "live":
        return "#" * 60
    return "#" * 48 + "." * 12 if phone["state"] == "absent" else "." * 31


def watched(views: SnapshotInputs) -> list[dict[str, Any]]:
    if not views.phones:
        return []
    hostile = views.phones[0].name == HOSTILE
    name = f"/{HOSTILE}" if hostile else "/pixel7/pose"
    return [
        {"name": "/scout/notes", "type": "string[]", "hz": 0.0, "age_s": 12.0, "readers": 1},
        {"name": name, "type": HOSTILE if hostile else "struct:Pose2d", "hz": 50.0, "age_s": 0.02, "readers": 3},
    ]


def healthy() -> Scenario:
    return Scenario("OK", inputs(robot=ROBOT, phones=(PIXEL, SCOUT), host=HOST, relay=RELAY, sources=(TELEOP,)))


def waiting() -> Scenario:
    robot = RobotView("connecting", "10.64.58.2:5810", "aoabridge-pi-left", 4.0)
    return Scenario("WAITING", inputs(robot=robot, phones=(), host=HOST))


def phone_lost() -> Scenario:
    return Scenario(
        "PROBLEM",
        inputs(robot=ROBOT, phones=(PIXEL, LOST), host=HOST, relay=RELAY),
        ("phone-lost", "scout", {"port": "1-1.3"}),
        ("usb-power", "power", {"n": 2}),
    )


def robot_down() -> Scenario:
    robot = RobotView("connecting", "10.64.58.2:5810", "aoabridge-pi-left", 42.0)
    return Scenario(
        "PROBLEM",
        inputs(robot=robot, phones=(PIXEL,), host=HOST, relay=RELAY),
        ("nt-refused", "10.64.58.2", {}),
    )


def many_problems() -> Scenario:
    robot = RobotView("lost", None, "aoabridge-pi-left", 42.0, 3)
    return Scenario(
        "PROBLEM",
        inputs(robot=robot, phones=(LOST, SILENT), host=HOST, relay=RELAY),
        ("nt-lost", "robot", {}),
        ("phone-lost", "scout", {"port": "1-1.3"}),
        ("app-silent", "pixel7", {}),
        ("nt-flapping", "robot", {}),
    )


def config_rejected() -> Scenario:
    first = "aoabridge.toml:14:8: nt.team: 99999 is not in 1..25599"
    errors = (first, "aoabridge.toml:19:1: acess: unknown; did you mean access?")
    config = ConfigView("/etc/aoabridge/aoabridge.toml", "rejected", (), errors)
    return Scenario(
        "PROBLEM",
        inputs(robot=RobotView("unset"), phones=(), host=HOST, config=config),
        ("config-rejected", "config", {"error": first}),
    )


def hostile() -> Scenario:
    robot = RobotView("connected", HOSTILE, HOSTILE, 1.0, mode=HOSTILE, match=HOSTILE, enabled=False)
    phone = PhoneView(HOSTILE, "absent", HOSTILE, serial=HOSTILE, model=HOSTILE, app=HOSTILE, app_version=HOSTILE)
    config = ConfigView(HOSTILE, "rejected", (HOSTILE,), (HOSTILE,))
    source = SourceView("frc", HOSTILE, True)
    return Scenario(
        "PROBLEM",
        inputs(name=HOSTILE, version=HOSTILE, robot=robot, phones=(phone,), config=config, sources=(source, source)),
        ("phone-lost", HOSTILE, {"port": HOSTILE}),
        ("config-rejected", "config", {"error": HOSTILE}),
    )


SCENARIOS: dict[str, Callable[[], Scenario]] = {
    "healthy": healthy,
    "waiting": waiting,
    "phone-lost": phone_lost,
    "robot-down": robot_down,
    "many-problems": many_problems,
    "config-rejected": config_rejected,
}


class PageObserver:
    """What the page's content needs of the observer, from one scenario."""

    def __init__(self, scenario: Scenario, config: Config | None = None) -> None:
        self.scenario = scenario
        self.config = config or default_config("pi-left")
        self.origins: dict[str, str] = {"nt.team": "file"}

    @property
    def config_view(self) -> ConfigView:
        return self.scenario.views.config

    def snapshot(self, now: float) -> dict[str, Any]:
        return self.scenario.snapshot()

    def flow(self, name: str) -> str:
        return next(flow(phone) for phone in self.scenario.snapshot()["phones"] if phone["name"] == name)

    def watched(self, now: float) -> list[dict[str, Any]]:
        return watched(self.scenario.views)
