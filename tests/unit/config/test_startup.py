"""Which configuration a start uses, and what the command line adds."""

from pathlib import Path

import pytest

from aoabridge.config import Flags, choose, with_flags
from aoabridge.config.loader import default_config
from aoabridge.errors import ConfigError

GOOD, OTHER, BAD = "[nt]\nteam = 1\n", "[nt]\nteam = 2\n", "[nt]\nteam = 0\n"


def files(folder: Path, text: str | None, last_good: str | None) -> tuple[Path, Path]:
    paths = folder / "aoabridge.toml", folder / "last-good.toml"
    for path, content in zip(paths, (text, last_good), strict=True):
        if content is not None:
            path.write_text(content)
    return paths


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ((GOOD, OTHER), ("ok", 1, 0)),
        ((None, OTHER), ("ok", None, 0)),
        ((BAD, OTHER), ("last-good", 2, 1)),
        ((BAD, None), ("rejected", None, 1)),
        ((BAD, BAD), ("rejected", None, 1)),
    ],
)
def test_a_bad_file_falls_back_to_the_last_good_one_and_else_closes_the_relay(
    tmp_path: Path, texts: tuple[str | None, str | None], expected: tuple[str, int | None, int]
) -> None:
    start = choose(*files(tmp_path, *texts))
    assert (start.state, start.config.nt.team, len(start.errors)) == expected
    assert start.relay_allowed == (expected[0] != "rejected")


def test_the_command_line_wins_over_the_file_and_replaces_the_target(tmp_path: Path) -> None:
    start = choose(*files(tmp_path, GOOD, None), Flags(server="10.0.0.2", log_level="debug", simulate=2))
    assert (start.config.nt.team, start.config.nt.server) == (None, ("10.0.0.2",))
    assert start.config.log.level == "debug"
    assert start.config.devices.simulated


def test_a_flag_is_judged_like_the_key_it_replaces() -> None:
    with pytest.raises(ConfigError, match=r"not in 1\.\.25599") as caught:
        with_flags(default_config("box"), Flags(team=0))
    assert caught.value.key == "nt.team"
