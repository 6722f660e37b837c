from aoabridge.status.text import clipped, printable


def test_control_format_and_broken_characters_are_escaped() -> None:
    assert printable("a\x1b[31m\n\t\x00\x9b") == "a\\x1b[31m\\n\\t\\x00\\x9b"
    assert printable("\u202egnp.exe\u2028\ud800") == "\\u202egnp.exe\\u2028\\ud800"
    assert printable("Pixel 7 é 日本") == "Pixel 7 é 日本"


def test_long_texts_end_in_an_ellipsis() -> None:
    assert (clipped("abcdef", 4), clipped("abc", 4), printable("abcdef", 3)) == ("abc…", "abc", "ab…")
