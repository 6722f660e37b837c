import pytest

from aoabridge.codecs.wpistruct.names import checked_name, listed, schema_topic_type, split_type_string
from aoabridge.errors import SchemaError


@pytest.mark.parametrize(
    ("type_string", "split"),
    [
        ("struct:Pose2d", ("Pose2d", False)),
        ("struct:Pose2d[]", ("Pose2d", True)),
        ("struct:Pose2d[][]", ("Pose2d[]", True)),
        ("struct:struct:A", ("struct:A", False)),
        ("structschema", None),
        ("photonstruct:X:hash", None),
        ("proto:Pose2d", None),
        ("double[]", None),
    ],
)
def test_split_type_string(type_string: str, split: tuple[str, bool] | None) -> None:
    assert split_type_string(type_string) == split


@pytest.mark.parametrize(
    ("topic", "found"),
    [
        ("/.schema/struct:Pose2d", ("Pose2d", True)),
        ("/AdvantageKit/.schema/struct:Pose2d", ("Pose2d", False)),
        ("/a/.schema/struct:b/.schema/struct:C", ("C", False)),
        ("/.schema/proto:Pose2d", None),
        ("/.schema/struct:", None),
        ("/x/struct:Pose2d", None),
    ],
)
def test_schema_topic_type(topic: str, found: tuple[str, bool] | None) -> None:
    assert schema_topic_type(topic) == found


def test_a_name_need_not_be_an_identifier() -> None:
    assert checked_name("struct:Foo<int, 3>", 255) == "Foo<int, 3>"
    assert checked_name("struct:struct:A", 255) == "struct:A"
    assert checked_name("é" * 127, 255) == "é" * 127


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("", "limit_name"),
        ("struct:", "limit_name"),
        ("é" * 128, "limit_name"),
        ("a\nb", "syntax"),
        ("a\x7f", "syntax"),
        ("\0", "syntax"),
        ("\ud800", "encoding"),
    ],
)
def test_refused_names(name: str, code: str) -> None:
    with pytest.raises(SchemaError) as caught:
        checked_name(name, 255)
    assert caught.value.code == code


def test_a_list_of_names_is_bounded() -> None:
    assert listed(["a", "b"]) == "a, b"
    assert listed(["a", "b"], " <- ") == "a <- b"
    assert listed([]) == ""
    assert listed(["a" * 5_000]) == "a" * 5_000
    text = listed([f"{index:08}" for index in range(500)])
    assert text.endswith(" and 400 more")
    assert len(text) < 1_100
