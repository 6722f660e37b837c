"""Pop-ups on edges only: rare, never old, always taken back."""

import json
from typing import Any

from aoabridge.status import Edge, IssueBoard, OpenIssue, build_snapshot
from aoabridge.status.popups import POPUP_TOPIC, Popups
from aoabridge.values import Publication, Withdrawal
from fakes.views import PIXEL, ROBOT, inputs


def snapshot(*, enabled: bool = True, ready: bool = False) -> dict[str, Any]:
    robot = build_snapshot(inputs(phones=(PIXEL,) if ready else (), robot=ROBOT), [])
    robot["robot"]["enabled"] = enabled
    return robot


def lost(name: str, *, raised: bool = True, code: str = "phone-lost") -> Edge:
    board = IssueBoard()
    board.set(code, name, True, 0.0, data={"port": "1-1", "error": "x"})
    issue: OpenIssue = board.open_issues()[0]
    return Edge(raised, issue)


def title(out: list[Publication | Withdrawal]) -> str | None:
    if not out or isinstance(out[0], Withdrawal):
        return None
    assert out[0].keep_all
    assert out[0].topic == POPUP_TOPIC
    value = json.loads(str(out[0].value))
    assert set(value) == {"level", "title", "description", "displayTime", "width", "height"}
    return f"{value['level']} {value['title']}"


def test_a_phone_lost_while_enabled_pops_up_and_is_taken_back_after_a_second() -> None:
    popups = Popups()
    popups.on_edges([lost("scout")], snapshot(), 10.0)
    assert title(popups.on_tick(snapshot(), 10.0)) == "ERROR scout lost"
    assert popups.on_tick(snapshot(), 10.5) == []
    assert popups.on_tick(snapshot(), 11.0) == [Withdrawal(POPUP_TOPIC)]
    assert popups.on_tick(snapshot(), 11.5) == []


def test_a_phone_lost_while_disabled_is_no_pop_up_and_neither_is_its_return() -> None:
    popups = Popups()
    popups.on_edges([lost("scout"), lost("scout", raised=False)], snapshot(enabled=False), 10.0)
    assert popups.on_tick(snapshot(), 10.0) == []


def test_its_return_is_told_if_its_loss_was_and_five_seconds_lie_between() -> None:
    popups = Popups()
    popups.on_edges([lost("scout")], snapshot(), 0.0)
    assert title(popups.on_tick(snapshot(), 0.0)) == "ERROR scout lost"
    popups.on_edges([lost("scout", raised=False)], snapshot(), 1.0)
    assert title(popups.on_tick(snapshot(), 1.0)) is None
    assert popups.on_tick(snapshot(), 4.9) == []
    assert title(popups.on_tick(snapshot(), 5.0)) == "INFO scout is back"


def test_a_loss_that_is_over_before_its_turn_is_not_told() -> None:
    popups = Popups()
    popups.on_edges([lost("a"), lost("b")], snapshot(), 0.0)
    assert title(popups.on_tick(snapshot(), 0.0)) == "ERROR a lost"
    popups.on_edges([lost("b", raised=False)], snapshot(), 2.0)
    popups.on_tick(snapshot(), 2.0)
    assert popups.on_tick(snapshot(), 6.0) == []


def test_what_has_waited_too_long_is_dropped() -> None:
    popups = Popups()
    popups.on_edges([lost(name) for name in "abcdefgh"], snapshot(), 0.0)
    told = [title(popups.on_tick(snapshot(), now / 2)) for now in range(200)]
    assert [item for item in told if item] == [f"ERROR {name} lost" for name in "abcd"]


def test_the_first_ready_and_a_refused_configuration_are_told_once() -> None:
    popups = Popups()
    assert title(popups.on_tick(snapshot(ready=True), 0.0)) == "INFO Bridge ready"
    popups.on_edges([lost("", code="config-rejected")] * 2, snapshot(), 1.0)
    popups.on_tick(snapshot(ready=True), 2.0)
    assert title(popups.on_tick(snapshot(ready=True), 5.0)) == "WARNING Configuration refused"
    assert [popups.on_tick(snapshot(ready=True), now)[1:] for now in (6.0, 10.0, 20.0)] == [[], [], []]
    assert popups.withdraw_all() == []
