"""Older formats are brought forward step by step, without touching the file."""

from aoabridge.config.migrate import migrate


def test_steps_are_applied_in_turn_up_to_the_current_schema() -> None:
    steps = {1: lambda data: {**data, "b": data["a"] + 1}, 2: lambda data: {**data, "c": data["b"] + 1}}
    old = {"schema": 1, "a": 1}
    assert migrate(old, 3, steps) == {"schema": 3, "a": 1, "b": 2, "c": 3}
    assert old == {"schema": 1, "a": 1}


def test_a_current_file_is_left_alone() -> None:
    data = {"a": 1}
    assert migrate(data, 1) is data
