"""What is told without being asked, on a relay that only notes it: status, alerts, pop-ups, service manager."""

import asyncio
import json
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from aoabridge.adapters.host import HostFigures, HostProbe
from aoabridge.adapters.notify import Notifier
from aoabridge.daemon.surfaces import Surfaces, instance_id
from aoabridge.values import Publication, Withdrawal
from fakes.relay import ObserverRig

ROOT = "/AOABridge/pi/"
POPUP = "/Elastic/RobotNotifications"
ALERTS = "/SmartDashboard/AOABridge Alerts/"


class Probe(HostProbe):
    """A machine whose figures the test sets."""

    def __init__(self) -> None:
        self.figures = HostFigures(5.0, 40.0, 50.0, False, 3000, False)

    def read(self) -> HostFigures:
        return self.figures


class SurfacesRig(ObserverRig):
    """Surfaces that are ticked after the observer, as the service does it."""

    def __init__(self, directory: Path, *, state_file: Path | None = None, **nt: Any) -> None:
        super().__init__(**nt)
        self.manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.manager.bind(str(directory / "notify"))
        self.manager.setblocking(False)
        self.stuck: list[str] = []
        self.probe = Probe()
        self.wall = 1_770_000_000.0 - self.now
        environment = {"NOTIFY_SOCKET": str(directory / "notify"), "WATCHDOG_USEC": "10000000"}
        self.notifier = Notifier(environment)
        self.surfaces = Surfaces(
            self.observer.config,
            self.relay,  # type: ignore[arg-type]  # as much of it as is used
            self.observer,
            machine_id="machine",
            state_file=state_file,
            state_dir=None,
            stuck=lambda: self.stuck,
            notifier=self.notifier,
            probe=self.probe,
            wall=lambda: self.wall + self.now,
        )

    def wait(self, seconds: float, step_s: float = 0.5) -> None:
        end = self.now + seconds
        while self.now < end - 1e-9:
            super().wait(step_s)
            self.surfaces.tick(self.now)
            self.surfaces.feed_watchdog(self.now)

    def take(self, prefix: str = "") -> list[Publication | Withdrawal]:
        found = [item for item in self.relay.published if item.topic.startswith(prefix)]
        self.relay.published.clear()
        return found

    def configure(self, **nt: Any) -> None:
        config = self.observer.config
        self.observer.config = msgspec.structs.replace(config, nt=msgspec.structs.replace(config.nt, **nt))

    def told(self) -> list[str]:
        """What the service manager was told since the last call."""
        messages = []
        while True:
            try:
                messages.append(self.manager.recv(4096).decode())
            except BlockingIOError:
                return messages

    def close(self) -> None:
        self.notifier.close()
        self.manager.close()


@pytest.fixture
def rig(tmp_path: Path) -> Any:
    rig = SurfacesRig(tmp_path)
    rig.connect()
    yield rig
    rig.close()


def values(items: list[Publication | Withdrawal]) -> dict[str, Any]:
    return {item.topic: item.value for item in items if isinstance(item, Publication)}


def popups(rig: SurfacesRig) -> list[dict[str, Any] | None]:
    return [json.loads(str(i.value)) if isinstance(i, Publication) else None for i in rig.take(POPUP)]


def test_status_is_published_and_taken_back(rig: SurfacesRig) -> None:
    rig.wait(0.5)
    shown = values(rig.take())
    assert shown[ROOT + "verdict"] == "ok"
    assert shown[ROOT + "devices/phone1/state"] == "live"
    assert shown[f"/AOABridge/.bridges/{instance_id('machine')}/name"] == "pi"
    rig.wait(0.5)
    assert values(rig.take(ROOT + "heartbeat")) == {ROOT + "heartbeat": 1}
    rig.configure(status=False)
    rig.wait(1)
    withdrawn = [item.topic for item in rig.take(ROOT) if isinstance(item, Withdrawal)]
    assert ROOT + "verdict" in withdrawn
    rig.wait(2)
    assert rig.take(ROOT) == []
    rig.configure(status=True)
    rig.wait(0.5)
    assert values(rig.take(ROOT))[ROOT + "verdict"] == "ok"


def test_alerts_follow_the_issues(rig: SurfacesRig) -> None:
    rig.wait(0.5)
    lists: dict[str, list[str]] = {ALERTS + name: [] for name in ("errors", "warnings", "infos")}
    assert values(rig.take(ALERTS)) == {ALERTS + ".type": "Alerts", **lists}
    rig.lose()
    rig.wait(0.5)
    (text,) = values(rig.take(ALERTS))[ALERTS + "errors"]
    assert text.startswith("Robot connection lost - check Ethernet")
    rig.connect()
    rig.wait(0.5)
    assert values(rig.take(ALERTS)) == {ALERTS + "errors": []}


def test_no_group_no_alerts(tmp_path: Path) -> None:
    rig = SurfacesRig(tmp_path, alerts="")
    rig.wait(5)
    assert rig.take("/SmartDashboard/") == []
    rig.close()


def test_one_pop_up_for_the_first_ready(rig: SurfacesRig) -> None:
    rig.wait(0.5)
    (first,) = popups(rig)
    assert first is not None
    assert (first["level"], first["title"]) == ("INFO", "Bridge ready")
    rig.wait(1)
    assert popups(rig) == [None]
    rig.lose()
    rig.wait(5)
    rig.connect()
    rig.wait(30)
    assert popups(rig) == []


def test_a_phone_that_is_lost_pops_up_while_the_robot_is_enabled(rig: SurfacesRig) -> None:
    rig.wait(10)
    popups(rig)
    rig.rig.announce("/FMSInfo/FMSControlData", "int", 0x21)
    rig.board.set("phone-lost", "phone1", active=True, now=rig.now, data={"port": "1-1"})
    rig.wait(0.5)
    (lost,) = popups(rig)
    assert lost is not None
    assert (lost["level"], lost["title"]) == ("ERROR", "phone1 lost")
    rig.configure(elastic=False)
    rig.board.clear("phone-lost", rig.now)
    rig.wait(10)
    assert popups(rig) == [None]  # what is shown is taken back, nothing else is said


def test_the_machine_is_looked_at(rig: SurfacesRig) -> None:
    rig.wait(0.5)
    assert rig.snapshot()["host"]["temp_c"] == 50.0
    rig.probe.figures = HostFigures(5.0, 40.0, None, True, 0, True)
    rig.wait(1)
    assert rig.codes() == ["usb-power", "disk-read-only"]
    assert rig.issue("usb-power").fix.endswith("seen 1x")
    rig.probe.figures = HostFigures(None, None, None, None, None, None)
    rig.wait(1)
    assert rig.codes() == []
    rig.probe.figures = HostFigures(5.0, 40.0, None, True, 0, False)
    rig.wait(1)
    assert rig.issue("usb-power").fix.endswith("seen 2x")


def test_a_file_that_cannot_be_written_is_told_until_it_can(tmp_path: Path) -> None:
    async def story() -> None:
        folder = tmp_path / "run"
        folder.write_text("no folder")
        rig = SurfacesRig(tmp_path, state_file=folder / "status.json")
        rig.connect()

        async def until(codes: list[str]) -> None:
            async with asyncio.timeout(10):
                while rig.codes() != codes:
                    rig.wait(1)
                    await asyncio.sleep(0.005)

        await until(["disk-read-only"])
        folder.unlink()
        folder.mkdir()
        await until([])
        assert json.loads((folder / "status.json").read_text())["schema"] == 1
        rig.close()

    asyncio.run(story())


@pytest.mark.parametrize(("step_s", "said"), [(3.0, "+3"), (-3600.0, "-3600"), (1.9, None), (-1.9, None)])
def test_a_step_of_the_wall_clock(rig: SurfacesRig, step_s: float, said: str | None) -> None:
    rig.wait(5)
    rig.wall += step_s
    rig.wait(0.5)
    found = [(issue.code, issue.sentence) for issue in rig.board.open_issues()]
    assert found == ([("clock-step", f"The wall clock moved by {said} s")] if said else [])
    rig.wait(700)
    assert rig.codes() == []


def test_another_bridge_of_the_same_name(rig: SurfacesRig) -> None:
    own = f"/AOABridge/.bridges/{instance_id('machine')}/name"
    rig.rig.announce(own, "string", "pi")  # our own topic comes back
    rig.rig.announce("/AOABridge/.bridges/0badcafe/name", "string", "pi-right")
    rig.wait(1)
    assert rig.codes() == []
    rig.rig.update("/AOABridge/.bridges/0badcafe/name", "pi")
    rig.wait(0.5)
    assert rig.codes() == ["name-conflict"]
    assert f"one of {instance_id('machine')}, 0badcafe" in rig.issue("name-conflict").fix
    rig.rig.update("/AOABridge/.bridges/0badcafe/name", "pi-right")
    rig.wait(0.5)
    assert rig.codes() == []


def test_two_machines_have_two_ids() -> None:
    ids = {instance_id(machine) for machine in ("", "a", "b")}
    assert len(ids) == 3
    assert all(len(found) == 8 and int(found, 16) >= 0 for found in ids)


def test_the_service_manager_hears_sentence_and_life(rig: SurfacesRig, caplog: pytest.LogCaptureFixture) -> None:
    rig.wait(0.5)
    assert rig.told() == ["STATUS=1 phone flowing, robot connected", "WATCHDOG=1"]
    rig.wait(10)
    assert rig.told() == ["WATCHDOG=1"] * 2  # each half of WATCHDOG_USEC
    rig.stuck = ["usb"]
    rig.wait(20)
    assert rig.told() == []
    assert [record.getMessage() for record in caplog.records] == ["no sign of life from: usb"]
    rig.stuck = []
    rig.wait(0.5)
    assert rig.told() == ["WATCHDOG=1"]
    rig.lose()
    rig.wait(0.5)
    assert rig.told() == ["STATUS=1 phone flowing; robot lost"]
