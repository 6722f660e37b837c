"""The table of several runs."""

from faults.report import table


def result(seed, **more):
    plain = {
        "seed": seed, "minutes": 12.04, "injected": {"stall": 2, "unplug": 3}, "without_effect": {},
        "healed": {"unplug": [0.5, 0.7]}, "counts": {"server restarts": 5}, "daemons": 2, "faults": [],
    }  # fmt: skip
    return plain | more


def test_runs_are_added_up():
    text = table(
        [
            result(1, without_effect={"stall: nothing halted": 1, "stall: no app": 2}),
            result(2, healed={"unplug": [2.0], "several at once": [1.0]}, faults=["x"]),
        ]
    )
    assert "10 faults (seed 1: 12.0 min, seed 2: 12.0 min), 1 violations." in text
    assert "| stall | 4 | 3 | 0 | - | - |" in text
    assert "| unplug | 6 | 0 | 3 | 0.70 s | 2.00 s |" in text
    assert "| several at once | - | - | 1 | 1.00 s | 1.00 s |" in text
    assert "| server restarts | 10 |" in text
    assert "| daemons | 4 |" in text
