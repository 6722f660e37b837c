"""Random plans round-trip; random and mutated texts give a plan or a PlanError."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

import robotlib
from robotlib import PlanError, parse
from robotlib.errors import PARSE_CODES
from robotlib.extensions import EXTENSIONS

x = st.floats(0.0, 16.54, allow_nan=False)
y = st.floats(0.0, 8.07, allow_nan=False)
poses = st.fixed_dictionaries({"x": x, "y": y, "rotation": st.floats(-1e6, 1e6)})
names = st.text(
    st.characters(exclude_categories=["Cc", "Cs"], exclude_characters="/\\"), min_size=1, max_size=30
).filter(lambda name: name.strip() and name not in (".", ".."))
leaves = st.one_of(
    st.builds(lambda i: {"type": "ACTION", "actionId": i}, st.integers(-(2**31), 2**31 - 1)),
    st.builds(lambda name, key: {"type": "PATH", key: name}, names, st.sampled_from(["path", "pathName"])),
    st.builds(lambda pose: {"type": "POSE", "pose": pose}, poses),
    st.builds(lambda found: {"type": "ROUTE", "routePoses": found}, st.lists(poses, min_size=1, max_size=5)),
    st.builds(lambda s: {"type": "WAIT", "seconds": s}, st.floats(0, 60)),
)
trees = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda name, children: {"type": name, "children": children},
        st.sampled_from(["SEQUENCE", "SEQUENCE", "PARALLEL", "RACE", "DEADLINE"]),
        st.lists(inner, max_size=5),
    ),
    max_leaves=25,
)
meta = st.fixed_dictionaries(
    {},
    optional={
        "version": st.just(1),
        "id": st.text(max_size=128),
        "name": st.text(st.characters(), max_size=128),
        "frame": st.sampled_from(["blue", "alliance"]),
    },
)


def parsed(text):
    """The plan, or None after checking the error."""
    try:
        return parse(text, extra_types=EXTENSIONS)
    except PlanError as error:
        assert error.code in PARSE_CODES
        assert error.path.startswith("$")
        assert 10 <= len(error.message) <= 120
        assert error.message[-1] in ".?"
        error.message.encode("utf-8")
        return None


@given(trees, meta)
def test_round_trip(tree, extra):
    plan = parsed(json.dumps({**tree, **extra}))
    if plan is None:  # two steps of a group drive
        return
    text = plan.dump()
    again = parse(text, extra_types=EXTENSIONS)
    assert again == plan
    assert again.dump() == text
    assert not {warning.code for warning in again.warnings} & {"unknown-field", "redundant-field", "rotation-range"}
    assert robotlib.from_dict(plan.to_dict(), extra_types=EXTENSIONS) == plan
    assert (
        parse(
            plan.dump(indent=1).encode("utf-8", "surrogatepass").decode("utf-8", "surrogatepass"),
            extra_types=EXTENSIONS,
        )
        == plan
    )


@given(st.binary(max_size=400))
def test_any_bytes(data):
    parsed(data)


@given(st.text(max_size=400))
def test_any_text(text):
    parsed(text)


@given(trees, st.lists(st.tuples(st.integers(0, 5000), st.binary(max_size=4)), min_size=1, max_size=6))
def test_mutated_plans(tree, changes):
    data = bytearray(json.dumps(tree).encode())
    for at, new in changes:
        place = at % (len(data) + 1)
        data[place : place + len(new)] = new
    plan = parsed(bytes(data))
    if plan is not None:
        assert parse(plan.dump(), extra_types=EXTENSIONS) == plan


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(trees, json_values, st.integers(0, 200))
@settings(max_examples=200)
def test_any_value_anywhere(tree, value, where):
    """Replace one value of a good plan by anything that JSON can say."""
    places = []

    def collect(node):
        for key in list(node) if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                collect(node[key])

    tree = json.loads(json.dumps(tree))
    collect(tree)
    node, key = places[where % len(places)]
    node[key] = value
    parsed(json.dumps(tree))
    try:
        robotlib.from_dict(tree, extra_types=EXTENSIONS)
    except PlanError as error:
        assert error.code in PARSE_CODES
