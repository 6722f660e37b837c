"""Whatever a phone sends: only documented errors, bounded memory, and the session goes on."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from aoabridge.bridge.core import CoreSettings
from aoabridge.bridge.settings import RelaySettings
from fakes.core_rig import CoreRig

CODES = {
    "bad-json", "not-an-object", "unknown-action", "missing-field", "wrong-type", "bad-key", "too-large",
    "type-mismatch", "cannot-infer-type", "bad-schema", "schema-conflict", "bad-value", "forbidden", "rate-limited",
    "not-connected", "too-many",
}  # fmt: skip

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=12,
)
words = st.sampled_from(
    ["action", "subscribe", "keys", "put", "key", "value", "schema", "type", "id", "hello", "ping", "pong", "/x", "raw"]
)
objects = st.dictionaries(words | st.text(max_size=5), words | json_values, max_size=6)
chunks = st.lists(st.binary(max_size=200) | objects.map(lambda obj: json.dumps(obj).encode() + b"\n"), max_size=20)


@settings(deadline=None)
@given(chunks, st.booleans())
def test_any_bytes_leave_a_session_that_works(parts, adopted):
    rig = CoreRig(CoreSettings(relay=RelaySettings(max_line_bytes=4096)), link=False)
    rig.link_up(adopted=adopted)
    lines = []
    for part in parts:
        rig.core.on_link_bytes(1, part, rig.now)
        rig.wait(1.0)
        lines += rig.lines()
        rig.accept()
    assert {line["error"]["code"] for line in lines if "error" in line} <= CODES
    rig.announce("/robot/x", "int", 5)
    rig.say(b"")
    rig.say({"action": "pong", "id": 1_000_000})  # values pause for an app that said hello and does not answer
    rig.say({"action": "subscribe", "keys": ["/robot/x"]})
    assert [line["value"] for line in rig.lines() if line.get("key") == "/robot/x"]


@settings(deadline=None)
@given(st.lists(objects, max_size=5), st.randoms(use_true_random=False))
def test_chunking_does_not_matter(messages, random):
    stream = b"".join(json.dumps(message).encode() + b"\n" for message in messages)
    whole, cut = CoreRig(), CoreRig()
    whole.core.on_link_bytes(1, stream, whole.now)
    position = 0
    while position < len(stream):
        size = random.randrange(1, 40)
        cut.core.on_link_bytes(1, stream[position : position + size], cut.now)
        position += size
    assert whole.raw() == cut.raw()
    assert whole.orders() == cut.orders()
