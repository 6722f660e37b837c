"""The byte stream of a hostile phone: any bytes in any chunks leave a session that works and a robot that is safe.

The first byte chooses the chunks; 0xFE in the rest lets a second pass.
"""

import json

from aoabridge.bridge.core import CoreSettings
from aoabridge.bridge.settings import AccessSettings, RelaySettings
from fakes.core_rig import POSE2D, POSE2D_INLINE, CoreRig

CODES = {
    "bad-json", "not-an-object", "unknown-action", "missing-field", "wrong-type", "bad-key", "too-large",
    "type-mismatch", "cannot-infer-type", "bad-schema", "schema-conflict", "bad-value", "forbidden", "rate-limited",
    "not-connected", "too-many",
}  # fmt: skip
SETTINGS = CoreSettings(
    relay=RelaySettings(max_line_bytes=4096, max_subscriptions=50, sample_lane=20),
    access=AccessSettings(put_deny=("/robot/locked*",), subscribe_deny=("/secret*",)),
)
SECOND = b"\xfe"


def run(data: bytes) -> None:
    """Feed the bytes; nothing forbidden is put or heard, and a subscribe afterwards works."""
    if not data:
        return
    rig = CoreRig(SETTINGS, link=False)
    rig.schemas(**POSE2D)
    for name, type_, value in (("/robot/x", "int", 5), ("/secret/y", "int", 6), ("/robot/text", "string", "a")):
        rig.announce(name, type_, value)
    rig.link_up(adopted=bool(data[0] & 1))
    step = 1 + data[0] // 2
    lines = []
    for number, part in enumerate(data[1:].split(SECOND)[:20]):
        if number:
            rig.wait(1.0)
        for at in range(0, len(part), step):
            rig.core.on_link_bytes(1, part[at : at + step], rig.now)
        lines += rig.lines()
        for topic, _, _ in rig.accept():
            assert not topic.startswith(("/robot/locked", "$", "/$")), topic
    _check(lines)
    rig.wait(2.0)
    rig.say(b"")  # ends a half line
    _check(rig.lines())
    rig.say({"action": "pong", "id": 1 << 60}, {"action": "subscribe", "keys": ["/robot/x"], "period": 0})
    answer = rig.lines()
    full = any(line.get("error", {}).get("code") == "too-many" for line in answer)
    assert full or any(line.get("key") == "/robot/x" for line in answer), answer


def _check(lines: list[dict]) -> None:
    for line in lines:
        if "error" in line:
            assert line["error"]["code"] in CODES
            assert len(line["error"].get("line", "")) <= 120
        assert not line.get("key", "").startswith("/secret")


def seeds() -> list[bytes]:
    """Every form of message, whole and cut."""
    forms = [
        {"action": "subscribe", "keys": ["/robot/x", "robot/", "/secret/y"], "all": True, "period": 0.5},
        {"subscribe": ["/"]},
        {"action": "unsubscribe", "keys": ["/robot/"]},
        {"action": "put", "key": "/RoboRoute/RunPlan", "value": True, "id": 7},
        {"action": "put", "key": "/robot/locked/a", "value": 1},
        {"action": "put", "key": "/p", "schema": POSE2D_INLINE, "value": {"translation": {"x": 1}}},
        {"action": "put", "key": "/b", "type": "raw", "value": "AAEC"},
        {"key": "/legacy", "value": [1, 2.5]},
        {"action": "hello", "app": "a", "version": "1", "nonce": "n"},
        {"action": "pong", "id": 1},
        {"action": "ping", "id": "x"},
        {"action": "topics", "types": True},
    ]
    texts = [json.dumps(form).encode() + b"\n" for form in forms]
    return [b"\xff" + text for text in texts] + [
        b"\x08" + b"".join(texts),
        b"\x0f" + SECOND.join(texts),
        b"\x00\xef\xbb\xbf" + texts[0] + b"\r\n\r\n",
        b"\x02" + b"[" * 3000 + b"\n",
        b"\x02" + b"x" * 5000 + b"\n" + texts[1],
    ]
