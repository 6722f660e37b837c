"""The extension types WAIT, RACE and DEADLINE; opt-in through `extra_types=EXTENSIONS`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from .extra import ExtraType, ParseContext
from .model import DeadlineNode, Node, RaceNode, WaitNode
from .steps import RaceStep, Step, StepMaker, WaitStep

__all__ = ["EXTENSIONS", "ExtraType"]


def _parse_wait(obj: Mapping[str, Any], context: ParseContext) -> Node:
    return WaitNode(context.number(obj, "seconds", 0.0, context.limits.max_wait_s), context.path)


def _parse_race(obj: Mapping[str, Any], context: ParseContext) -> Node:
    children = context.children(obj)
    context.exclusive_drive(children)
    return RaceNode(children, context.path)


def _parse_deadline(obj: Mapping[str, Any], context: ParseContext) -> Node:
    children = context.children(obj)
    context.exclusive_drive(children)
    return DeadlineNode(children, context.path)


def _build_wait(node: WaitNode, _leaves: StepMaker) -> Step:
    return WaitStep(node.seconds)


def _build_race(node: RaceNode, leaves: StepMaker) -> Step:
    return RaceStep([leaves.step(child) for child in node.children])


def _build_deadline(node: DeadlineNode, leaves: StepMaker) -> Step:
    return RaceStep([leaves.step(child) for child in node.children], deadline=True)


EXTENSIONS: Mapping[str, ExtraType] = MappingProxyType(
    {
        "WAIT": ExtraType(_parse_wait, _build_wait, fields=("seconds",)),
        "RACE": ExtraType(_parse_race, _build_race, fields=("children",)),
        "DEADLINE": ExtraType(_parse_deadline, _build_deadline, fields=("children",)),
    }
)
