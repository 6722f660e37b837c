"""The put tables against a real server: what is said, and the type and value that another client sees; or why not."""

from typing import Any

import pytest

from rig.nt_process import NtProcess
from rig.relay_thread import Phone, RelayThread

UNKNOWN: list[tuple[str, str, Any]] = [
    ('"value":true', "boolean", True),
    ('"value":42', "int", 42),
    ('"value":-9223372036854775808', "int", -(2**63)),
    ('"value":42.0', "double", 42.0),
    ('"value":"text ä€😀"', "string", "text ä€😀"),
    ('"value":[true,false]', "boolean[]", [True, False]),
    ('"value":[1,2]', "int[]", [1, 2]),
    ('"value":[1.5,2]', "double[]", [1.5, 2.0]),
    ('"value":["a",""]', "string[]", ["a", ""]),
    ('"value":{"a":[1,null]}', "json", '{"a":[1,null]}'),
    ('"type":"Double","value":1', "double", 1.0),
    ('"type":"float","value":0.1', "float", 0.10000000149011612),
    ('"type":"int","value":42.0', "int", 42),
    ('"type":"double[]","value":[]', "double[]", []),
    ('"type":"float[]","value":[0.5,1]', "float[]", [0.5, 1.0]),
    ('"type":"json","value":[{"x":1}]', "json", '[{"x":1}]'),
    ('"type":"json","value":"{ \\"a\\": 1 }"', "json", '{ "a": 1 }'),
    ('"type":"raw","value":"AAEC"', "raw", b"\0\1\2"),
    ('"type":"proto:Foo","value":"AA=="', "proto:Foo", b"\0"),
    ('"schema":"struct E1 {int8 v;}","value":{"v":-1}', "struct:E1", b"\xff"),
    ('"schema":"struct E1 {int8 v;}","value":[{"v":1},{"v":2}]', "struct:E1[]", b"\1\2"),
    ('"schema":"struct E1 {int8 v;}","value":[]', "struct:E1[]", b""),
]
UNKNOWN_REFUSED = [
    ('"value":null', "bad-value"),
    ('"value":[]', "cannot-infer-type"),
    ('"value":[1,true]', "cannot-infer-type"),
    ('"value":[1,null]', "bad-value"),
    ('"value":[[1]]', "cannot-infer-type"),
    ('"value":[{"x":1}]', "cannot-infer-type"),
    ('"value":9223372036854775808', "bad-value"),
    ('"value":1e400', "bad-value"),
    ('"type":"int","value":1.5', "type-mismatch"),
    ('"type":"raw","value":"AB=="', "bad-value"),
    ('"type":"rpc","value":1', "forbidden"),
    ('"type":"structschema","value":"AAAA"', "forbidden"),
    ('"type":"struct:Nobody","value":{}', "bad-schema"),
    ('"schema":"struct E2 {int8 v;}","value":{"v":128}', "bad-value"),
    ('"schema":"struct E2 {int8 v;}","value":{}', "bad-value"),
    ('"schema":"struct E2 {int8 v;}","value":5', "type-mismatch"),
    ('"schema":"struct E2 {Nope v;}","value":{}', "bad-schema"),
]
FIRST = {
    "boolean": True,
    "int": 0,
    "double": 0.5,
    "float": 0.5,
    "string": "first",
    "json": "{}",
    "boolean[]": [True],
    "int[]": [0],
    "double[]": [0.5],
    "float[]": [0.5],
    "string[]": ["first"],
    "raw": b"first",
    "struct:K": b"\0",
    "struct:K[]": b"\0\0",
}
KNOWN: list[tuple[str, str, Any]] = [
    ("boolean", '"value":false', False),
    ("int", '"value":7', 7),
    ("int", '"value":42.0', 42),
    ("int", '"value":9223372036854775807', 2**63 - 1),
    ("double", '"value":1', 1.0),
    ("double", '"value":1.5', 1.5),
    ("float", '"value":0.1', 0.10000000149011612),
    ("float", '"value":16777216', 16777216.0),
    ("string", '"value":"s"', "s"),
    ("json", '"value":{"a":null}', '{"a":null}'),
    ("json", '"value":[1,"x"]', '[1,"x"]'),
    ("json", '"value":"[1, 2]"', "[1, 2]"),
    ("boolean[]", '"value":[]', []),
    ("int[]", '"value":[1,2.0]', [1, 2]),
    ("double[]", '"value":[1,2.5]', [1.0, 2.5]),
    ("float[]", '"value":[0.25]', [0.25]),
    ("string[]", '"value":["a"]', ["a"]),
    ("raw", '"type":"raw","value":"AAEC"', b"\0\1\2"),
    ("struct:K", '"value":{"v":5}', b"\5"),
    ("struct:K", '"schema":"struct K {int8 v;}","value":{"v":6}', b"\6"),
    ("struct:K[]", '"value":[{"v":5}]', b"\5"),
    ("struct:K[]", '"value":[]', b""),
]
KNOWN_REFUSED = [
    ("boolean", '"value":1', "type-mismatch"),
    ("boolean", '"value":null', "bad-value"),
    ("int", '"value":true', "type-mismatch"),
    ("int", '"value":1.5', "type-mismatch"),
    ("int", '"value":9223372036854775808', "bad-value"),
    ("int", '"value":9007199254740994.0', "bad-value"),
    ("double", '"value":true', "type-mismatch"),
    ("double", '"value":9007199254740993', "bad-value"),
    ("double", '"type":"int","value":1', "type-mismatch"),
    ("float", '"value":16777217', "bad-value"),
    ("float", '"value":1e39', "bad-value"),
    ("string", '"value":1', "type-mismatch"),
    ("string", '"value":"\\ud800"', "bad-value"),
    ("json", '"value":"{oops"', "bad-value"),
    ("json", '"value":5', "type-mismatch"),
    ("double[]", '"value":[1,null]', "bad-value"),
    ("double[]", '"value":[[1]]', "type-mismatch"),
    ("double[]", '"value":1.0', "type-mismatch"),
    ("raw", '"value":"AAEC"', "type-mismatch"),
    ("raw", '"type":"raw","value":"A"', "bad-value"),
    ("struct:K", '"value":[{"v":5}]', "type-mismatch"),
    ("struct:K", '"value":5', "type-mismatch"),
    ("struct:K", '"value":{"v":500}', "bad-value"),
    ("struct:K", '"schema":"struct L {int8 v;}","value":{"v":6}', "type-mismatch"),
    ("struct:K", '"schema":"struct K {int16 v;}","value":{"v":6}', "schema-conflict"),
    ("struct:K[]", '"value":{"v":5}', "type-mismatch"),
]


def put(key: str, rest: str) -> str:
    return f'{{"action":"put","key":"{key}",{rest}}}'


def same(got: Any, expected: Any) -> bool:
    if isinstance(expected, list):
        return isinstance(got, list) and len(got) == len(expected) and all(map(same, got, expected))
    return type(got) is type(expected) and got == expected


def test_the_put_table_for_unknown_topics(robot: NtProcess, witness: NtProcess, phone: Phone) -> None:
    for number, (rest, type_string, value) in enumerate(UNKNOWN):
        key = f"/new/{number}"
        assert phone.answer(put(key, rest))[0] == "ack", rest
        witness.wait_topic(key)
        witness.wait(lambda key=key: witness.values(key))
        assert witness.types()[key] == type_string, rest
        assert same(witness.values(key)[-1], value), rest
    for number, (rest, code) in enumerate(UNKNOWN_REFUSED):
        assert phone.answer(put(f"/refused/{number}", rest)) == ("error", code), rest
    assert phone.answer(put("/fence", '"value":1'))[0] == "ack"
    robot.wait_topic("/fence")
    assert [name for name in robot.topics() if name.startswith("/refused/") or name.endswith("struct:E2")] == []


def test_the_put_table_for_known_topics(
    robot: NtProcess, witness: NtProcess, bridge: RelayThread, phone: Phone
) -> None:
    robot.publish_schema("K", "int8 v")
    for number, (type_string, _, _) in enumerate([*KNOWN, *KNOWN_REFUSED]):
        robot.publish(f"/known/{number}", type_string, FIRST[type_string])
    last = f"/known/{len(KNOWN) + len(KNOWN_REFUSED) - 1}"
    phone.wait(lambda: bridge.ask(lambda: bridge.core.topics.find(last) is not None))
    for number, (type_string, rest, value) in enumerate(KNOWN):
        key = f"/known/{number}"
        assert phone.answer(put(key, rest))[0] == "ack", (type_string, rest)
        witness.wait(lambda key=key: len(witness.values(key)) == 2)
        assert witness.types()[key] == type_string
        assert same(witness.values(key)[-1], value), (type_string, rest)
    for number, (type_string, rest, code) in enumerate(KNOWN_REFUSED, len(KNOWN)):
        key = f"/known/{number}"
        assert phone.answer(put(key, rest)) == ("error", code), (type_string, rest)
    assert phone.answer(put("/fence", '"value":1'))[0] == "ack"
    witness.wait_value("/fence", 1)
    for number, (type_string, _, _) in enumerate(KNOWN_REFUSED, len(KNOWN)):
        assert len(witness.values(f"/known/{number}")) == 1
        assert witness.types()[f"/known/{number}"] == type_string
    assert "/.schema/struct:L" not in robot.topics()


@pytest.mark.parametrize("key", ["$x", "/.schema/struct:Z", "/a/.schema/b", "/RoboRoute/Heartbeat"])
def test_reserved_names_are_forbidden(robot: NtProcess, phone: Phone, key: str) -> None:
    assert phone.answer(put(key, '"value":1')) == ("error", "forbidden")
    assert phone.answer(put("/fence", '"value":1'))[0] == "ack"
    robot.wait_topic("/fence")
    assert set(robot.topics()) <= {"/fence", "/RoboRoute/Heartbeat"}
