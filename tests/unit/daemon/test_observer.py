"""The observer in virtual time: every condition of robot, phones and topics raises its issue, and lets it go again."""

from typing import Any

import pytest

from aoabridge.adapters.reach import Answer
from aoabridge.daemon.observer import PhoneFacts
from aoabridge.status import ConfigView
from aoabridge.values import ClockSync
from fakes.core_rig import POSE2D
from fakes.relay import ObserverRig

# The robot.


def test_a_connected_robot_is_no_issue() -> None:
    rig = ObserverRig()
    rig.connect()
    rig.wait(60)
    assert rig.codes() == []
    assert not rig.way.asked
    assert rig.snapshot()["verdict"] == "ok"
    assert rig.snapshot()["robot"]["state"] == "connected"


def test_nobody_chose_a_robot() -> None:
    rig = ObserverRig(team=None)
    rig.wait(0.5)
    assert rig.codes() == ["nt-unset"]
    assert not rig.way.asked
    assert rig.snapshot()["robot"]["state"] == "unset"
    assert "nt.team" not in rig.issue("nt-unset").sentence
    assert "team = N" in rig.issue("nt-unset").fix


def test_being_the_server_needs_no_robot() -> None:
    rig = ObserverRig(team=None, embedded=True)
    rig.wait(60)
    assert rig.codes() == []
    assert rig.snapshot()["robot"]["state"] == "serving"
    assert rig.snapshot()["robot"]["test"] is True


def test_without_network_nothing_else_is_blamed() -> None:
    rig = ObserverRig()
    rig.has_network = False
    rig.way.answer = Answer.REFUSED
    rig.way.is_outside = True
    rig.wait(30)
    assert rig.codes() == ["nt-no-link"]
    rig.has_network = True
    rig.way.answer = rig.way.is_outside = None
    rig.wait(1)
    assert "nt-no-link" not in rig.codes()


def test_a_silent_robot_is_told_after_a_while() -> None:
    rig = ObserverRig()
    rig.wait(3)
    assert rig.codes() == []
    rig.wait(20)
    assert rig.codes() == ["nt-timeout"]
    assert "ping 10.64.58.2" in rig.issue("nt-timeout").fix
    rig.connect()
    rig.wait(0.5)
    assert rig.codes() == []


def test_a_known_silence_is_told_sooner() -> None:
    rig = ObserverRig()
    rig.way.answer = Answer.SILENT
    rig.wait(3.5)
    assert rig.codes() == ["nt-timeout"]


def test_a_robot_without_program_refuses() -> None:
    rig = ObserverRig()
    rig.wait(1)
    rig.way.answer, rig.way.host = Answer.REFUSED, "10.64.58.2"
    rig.wait(60)
    assert rig.codes() == ["nt-refused"]
    assert rig.issue("nt-refused").subject == "10.64.58.2"
    rig.way.host = "172.22.11.2"
    rig.wait(0.5)
    assert [issue.subject for issue in rig.board.open_issues()] == ["172.22.11.2"]
    rig.way.answer = Answer.SILENT
    rig.wait(0.5)
    assert rig.codes() == ["nt-timeout"]


def test_a_machine_outside_the_robots_network_is_told_so() -> None:
    rig = ObserverRig(team=25599)
    rig.way.answer, rig.way.is_outside = Answer.SILENT, True
    rig.wait(4)
    assert rig.codes() == ["nt-timeout", "nt-subnet"]
    assert "10.255.99.6" in rig.issue("nt-subnet").fix
    rig.connect()
    rig.wait(0.5)
    assert rig.codes() == []


def test_a_lost_robot() -> None:
    rig = ObserverRig()
    rig.connect()
    rig.wait(5)
    rig.lose()
    rig.wait(0.5)
    assert rig.codes() == ["nt-lost"]
    robot = rig.snapshot()["robot"]
    assert (robot["state"], robot["flaps"], robot["since_s"]) == ("lost", 1, 0.5)
    rig.way.answer, rig.way.host = Answer.REFUSED, "10.64.58.2"
    rig.wait(30)
    assert rig.codes() == ["nt-lost", "nt-refused"]
    rig.connect()
    rig.wait(0.5)
    assert rig.codes() == []


def test_a_connection_that_keeps_dropping() -> None:
    rig = ObserverRig()
    for _ in range(3):
        rig.connect()
        rig.wait(5)
        rig.lose()
        rig.wait(1)
    rig.connect()
    rig.wait(0.5)
    assert rig.codes() == ["nt-flapping"]
    rig.wait(60)
    assert rig.codes() == []


def test_a_client_that_was_blocked() -> None:
    rig = ObserverRig()
    rig.connect()
    rig.relay.nt.blocked = True
    rig.wait(0.5)
    assert rig.codes() == ["nt-blocked"]
    rig.relay.nt.blocked = False
    rig.wait(60.5)
    assert rig.codes() == []


@pytest.mark.parametrize(
    ("address", "test"),
    [
        ("127.0.0.1:5810", True),
        ("localhost:5810", True),
        ("[::1]:5810", True),
        ("10.64.58.2:5810", False),
        ("roborio-6458-frc.local:5810", False),
    ],
)
def test_a_robot_on_this_machine_is_none(address: str, test: bool) -> None:
    rig = ObserverRig()
    rig.connect()
    rig.relay.nt.address = address
    assert rig.snapshot()["robot"]["test"] is test


def test_the_clock_is_shown_only_while_it_is_known() -> None:
    rig = ObserverRig()
    assert rig.snapshot()["robot"]["offset_us"] is None
    rig.relay.clock_sync = ClockSync(412, 550, valid=True)
    assert (rig.snapshot()["robot"]["offset_us"], rig.snapshot()["robot"]["rtt2_us"]) == (412, 550)


def test_mode_and_match_come_from_the_field() -> None:
    rig = ObserverRig()
    rig.connect()
    rig.rig.announce("/FMSInfo/FMSControlData", "int", 0x21)
    rig.rig.announce("/FMSInfo/MatchNumber", "int", 41)
    rig.rig.announce("/FMSInfo/MatchType", "int", 2)
    robot = rig.snapshot()["robot"]
    assert (robot["enabled"], robot["mode"], robot["match"]) == (True, "teleop", "Q41")


# Phones.


def test_an_app_that_does_not_read() -> None:
    rig = ObserverRig()
    rig.connect()
    assert rig.rig.core.take_bytes(1, rig.now)
    rig.rig.core.on_bytes_accepted(1, 0, rig.now)
    rig.wait(1.5)
    assert rig.codes() == []
    rig.wait(1)
    assert rig.codes() == ["app-stalled"]
    assert rig.snapshot()["phones"][0]["blocked_s"] == 2.5
    rig.phones.clear()
    rig.wait(0.5)
    assert rig.codes() == []


def test_an_app_that_does_not_read_is_unplugged() -> None:
    rig = ObserverRig()
    rig.rig.core.take_bytes(1, rig.now)
    rig.rig.core.on_bytes_accepted(1, 0, rig.now)
    rig.connect()
    rig.wait(3)
    assert "app-stalled" in rig.codes()
    rig.rig.core.on_link_down(1, rig.now)
    rig.phones = [PhoneFacts("phone1", "absent", "1-1")]
    rig.wait(0.5)
    assert rig.codes() == []


def test_an_app_that_sends_garbage() -> None:
    rig = ObserverRig()
    rig.connect()
    rig.rig.say(*["{garbage"] * 10)
    rig.wait(0.5)
    assert rig.codes() == []
    rig.rig.say("{garbage")
    rig.wait(0.5)
    assert rig.codes() == ["app-garbage"]
    assert "aoabridge monitor phone1" in rig.issue("app-garbage").fix
    rig.wait(61)
    assert rig.codes() == []


def test_puts_that_are_refused() -> None:
    rig = ObserverRig()
    rig.connect()
    rig.rig.say({"action": "put", "key": "/.schema/struct:X", "value": 1})
    rig.wait(0.5)
    assert rig.codes() == ["put-refused"]
    assert rig.issue("put-refused").fix.startswith("forbidden on /.schema/struct:X")
    rig.wait(10.5)
    assert rig.codes() == []


def test_figures_of_links_that_are_over_are_forgotten() -> None:
    rig = ObserverRig()
    rig.connect()
    for ident in range(2, 50):
        rig.rig.link_up(ident)
        rig.phones = [PhoneFacts("phone1", "live", "1-1", link=ident)]
        rig.rig.say("{garbage", link=ident)
        rig.wait(0.5)
        rig.rig.core.on_link_down(ident, rig.now)
    rig.phones.clear()
    rig.wait(0.5)
    assert rig.observer._counted == {}  # it would grow with every plug


def test_a_struct_without_schema() -> None:
    rig = ObserverRig()
    rig.connect()
    rig.rig.announce("/pose", "struct:Pose2d", b"\0" * 24)
    rig.rig.say({"action": "subscribe", "keys": ["/pose"]})
    rig.wait(4.5)
    assert rig.codes() == []
    rig.wait(1)
    assert rig.codes() == ["schema-missing"]
    assert rig.issue("schema-missing").subject == "/pose"
    rig.rig.schemas(**POSE2D)
    rig.rig.update("/pose", b"\0" * 24)
    rig.wait(0.5)
    assert rig.codes() == []


# The rest of the snapshot.


def test_the_last_minute_of_a_phone() -> None:
    rig = ObserverRig()
    rig.connect()
    rig.wait(1)
    for _ in range(3):
        rig.rig.say({"action": "put", "key": "/x", "value": 1})
        rig.wait(1)
    rig.wait(2)
    assert rig.observer.flow("phone1").endswith("###..")
    rig.wait(100)
    assert len(rig.observer.flow("phone1")) == 60
    rig.phones.clear()
    rig.wait(1)
    assert rig.observer.flow("phone1") == ""


def test_a_minute_of_rare_looks_is_a_minute() -> None:
    rig = ObserverRig()
    rig.connect()
    rig.rig.say({"action": "put", "key": "/x", "value": 1})
    rig.wait(1, step_s=0.5)
    assert rig.observer.flow("phone1").endswith("#")
    for _ in range(4):
        rig.wait(5, step_s=5)
    assert rig.observer.flow("phone1").endswith("#" + "." * 20)


def test_topics_that_phones_get_silent_ones_first() -> None:
    rig = ObserverRig()
    rig.connect()
    for name in ("/fast", "/slow", "/dead", "/unwanted"):
        rig.rig.announce(name, "int", 0)
    rig.rig.say({"action": "subscribe", "keys": ["/fast", "/slow", "/dead"]})
    values: dict[str, int] = dict.fromkeys(("/fast", "/slow", "/dead", "/unwanted"), 0)

    def run(seconds: int, **rates: int) -> None:
        for _ in range(seconds):
            for name, rate in rates.items():
                for _ in range(rate):
                    values["/" + name] += 1
                    rig.rig.update("/" + name, values["/" + name])
            rig.wait(1)

    run(3, fast=20, slow=2, dead=5, unwanted=50)
    assert [topic["name"] for topic in rig.observer.watched(rig.now)] == ["/fast", "/dead", "/slow"]
    run(3, fast=20, slow=2)
    found: list[dict[str, Any]] = rig.observer.watched(rig.now)
    assert [topic["name"] for topic in found] == ["/dead", "/fast", "/slow"]
    assert (found[0]["hz"], found[0]["age_s"], found[0]["readers"]) == (0.0, 4.0, 1)
    assert found[1]["hz"] == pytest.approx(20)


def test_the_snapshot_names_everything() -> None:
    rig = ObserverRig()
    rig.observer.config_view = ConfigView("/etc/x", "rejected", (), ("x:1:1: wrong",))
    snapshot = rig.snapshot()
    assert snapshot["phones"][0]["serial"] == "…C123"
    assert snapshot["config"]["errors"] == ["x:1:1: wrong"]
    assert snapshot["uptime_s"] == 0.0
    assert snapshot["team"] == 6458


def test_a_link_that_ended_between_two_looks_leaves_no_figures() -> None:
    rig = ObserverRig()
    rig.observer.snapshot(rig.now)
    rig.rig.core.on_link_down(1, rig.now)
    rig.wait(1)
    assert not [name for name in rig.observer._rates._began if name.startswith("1:")]


def test_what_went_by_halves_inside_is_counted_and_what_is_usual_is_not() -> None:
    rig = ObserverRig()
    assert rig.snapshot()["relay"]["counters"] == {}
    rig.relay.nt.counters |= {"nt_bad_utf8": 2, "nt_coalesced": 3}
    rig.relay.core.fanout.counters["too_large"] = 1
    assert rig.snapshot()["relay"]["counters"] == {"too_large": 1, "nt_bad_utf8": 2}


def test_a_robot_that_came_and_went_between_two_looks_is_lost() -> None:
    rig = ObserverRig()
    rig.wait(0.5)
    rig.connect()
    rig.lose()
    rig.wait(1)
    assert "nt-lost" in rig.codes()
    assert rig.snapshot()["robot"]["state"] == "lost"
