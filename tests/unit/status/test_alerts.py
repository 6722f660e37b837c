"""The Alerts group: always complete, short, newest first."""

from aoabridge.status import IssueBoard
from aoabridge.status.alerts import MAX_ENTRIES, MAX_TEXT, Alerts
from aoabridge.values import Publication, Withdrawal

ROOT = "/SmartDashboard/AOABridge Alerts/"


def values(out: list[Publication | Withdrawal]) -> dict[str, object]:
    return {item.topic.removeprefix(ROOT): item.value for item in out if isinstance(item, Publication)}


def test_the_group_exists_with_its_type_and_three_lists_without_any_issue() -> None:
    out = Alerts("AOABridge Alerts").on_tick([])
    assert values(out) == {".type": "Alerts", "errors": [], "warnings": [], "infos": []}
    first = out[0]
    assert isinstance(first, Publication)
    assert first.properties == {"SmartDashboard": "Alerts"}


def test_issues_go_to_the_list_of_their_severity_newest_first() -> None:
    board, alerts = IssueBoard(), Alerts("AOABridge Alerts")
    alerts.on_tick([])
    board.set("phone-lost", "scout", True, 1.0, data={"port": "1-1.3"})
    board.set("nt-lost", "robot", True, 2.0)
    board.set("usb-power", "", True, 3.0, data={"n": 2})
    board.set("disk-read-only", "", True, 4.0)
    shown = values(alerts.on_tick(board.open_issues()))
    assert shown["errors"] == [
        "Robot connection lost - check Ethernet to the radio/roboRIO; robot code restart…",
        "scout lost - push the plug in at port 1-1.3, then unlock it",
    ]
    assert shown["warnings"] == ["Power supply too weak - 5 V supply with more current; seen 2x"]
    assert shown["infos"] == ["Disk not writable: logs in RAM - none needed; nothing of the relay is written"]
    assert alerts.on_tick(board.open_issues()) == []
    board.clear("nt-lost", 5.0)
    assert set(values(alerts.on_tick(board.open_issues()))) == {"errors"}


def test_lists_and_texts_are_bounded() -> None:
    board = IssueBoard()
    for number in range(30):
        board.set("phone-lost", f"{'x' * 60}{number}", True, float(number))
    errors = values(Alerts("AOABridge Alerts").on_tick(board.open_issues()))["errors"]
    assert isinstance(errors, list)
    assert len(errors) == MAX_ENTRIES
    assert max(map(len, errors)) <= MAX_TEXT
