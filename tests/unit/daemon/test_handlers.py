"""What the control socket answers about topics."""

from typing import Any

from aoabridge.adapters.control import Query
from aoabridge.daemon.handlers import Handlers
from aoabridge.daemon.taps import Taps
from fakes.relay import ObserverRig


def topics(rig: ObserverRig, **arguments: Any) -> dict[str, Any]:
    table = Handlers(
        rig.observer,
        rig.relay,  # type: ignore[arg-type]  # as much of it as is looked at
        Taps(lambda: 0.0),
        list,
        lambda: rig.now,
    ).table()
    query = table["topics"]
    assert isinstance(query, Query)
    answer: Any = query.answer(arguments)["topics"]
    return {topic["name"]: topic for topic in answer}


def test_values_are_shown_only_if_they_are_asked_for() -> None:
    rig = ObserverRig()
    rig.connect()
    rig.rig.announce("/a", "double", 1.5)
    rig.rig.announce("/raw", "raw", b"\x00\xff")
    rig.rig.announce("/none", "int")
    assert not any("value" in topic for topic in topics(rig).values())
    found = topics(rig, values=True)
    assert {name: found[name]["value"] for name in ("/a", "/raw", "/none")} == {
        "/a": 1.5,
        "/raw": "AP8=",
        "/none": None,
    }
    assert list(topics(rig, prefix="ra", values=True)) == ["/raw"]
