"""The judgement in one word and one sentence: what the operator must know in three seconds."""

from collections.abc import Sequence
from typing import NamedTuple

from aoabridge.issues import Severity
from aoabridge.status.board import OpenIssue
from aoabridge.status.text import clipped
from aoabridge.status.views import PhoneView, RobotView, SnapshotInputs

__all__ = ["Judgement", "judged"]

MAX_SENTENCE = 100  # one line of a terminal, of the service manager and of the page

_PRESENT = {"live", "linked", "stale", "opening", "switching", "probing", "seen", "reopen", "cooldown", "blocked"}
_CONNECTED = {"connected", "serving"}


class Judgement(NamedTuple):
    """``verdict``: ok, waiting or problem (down is said by who finds no daemon)."""

    verdict: str
    sentence: str


def judged(inputs: SnapshotInputs, issues: Sequence[OpenIssue]) -> Judgement:
    """Verdict and sentence; the sentence names phones, then the robot, then anything else that is a problem."""
    problems = [issue for issue in issues if issue.severity is Severity.PROBLEM]
    live = any(phone.state == "live" for phone in inputs.phones)
    if problems:
        verdict = "problem"
    elif live and inputs.robot.state in _CONNECTED:
        verdict = "ok"
    else:
        verdict = "waiting"
    parts = [_phones(inputs.phones, problems), _robot(inputs.robot, problems)]
    others = [issue for issue in problems if not _said(issue, inputs)]
    if others:
        more = f" (+{len(others) - 1} more)" if len(others) > 1 else ""
        parts.insert(0, others[0].sentence + more)
    joint = ", " if verdict == "ok" else "; "
    return Judgement(verdict, clipped(joint.join(parts), MAX_SENTENCE))


def _said(issue: OpenIssue, inputs: SnapshotInputs) -> bool:
    """True if the phones' or the robot's part of the sentence covers it."""
    if issue.code.startswith("nt-"):
        return inputs.robot.state not in _CONNECTED
    return any(issue.subject == phone.name for phone in inputs.phones)


def _phones(phones: Sequence[PhoneView], problems: Sequence[OpenIssue]) -> str:
    troubled = {issue.subject for issue in problems}
    lost = [phone for phone in phones if any(i.code == "phone-lost" and i.subject == phone.name for i in problems)]
    counted = [phone for phone in phones if phone.state in _PRESENT or phone in lost]
    if not counted:
        return "no phone"
    if lost:
        return f"{lost[0].name} lost" if len(counted) == 1 else f"{len(lost)} of {_count(counted)} lost"
    flowing = [phone for phone in counted if phone.state == "live" and phone.name not in troubled]
    if len(flowing) == len(counted):
        return f"{_count(counted)} flowing"
    stuck = [issue for issue in problems if issue.subject in {phone.name for phone in counted}]
    if len(counted) == 1 and stuck:
        return stuck[0].sentence
    return f"{len(flowing)} of {_count(counted)} flowing"


def _count(phones: Sequence[PhoneView]) -> str:
    return f"{len(phones)} phone" + ("" if len(phones) == 1 else "s")


def _robot(robot: RobotView, problems: Sequence[OpenIssue]) -> str:
    if robot.state == "serving":
        return "we are the server"
    if robot.state in _CONNECTED:
        return "robot connected"
    if any(issue.code == "nt-lost" for issue in problems):
        return "robot lost"
    return "no robot chosen" if robot.state == "unset" else "robot not connected"
