"""What the relay is told of the configuration."""

from pathlib import Path

import pytest

from aoabridge.config import load_config
from aoabridge.daemon.settings import core_settings


@pytest.mark.parametrize(
    ("text", "reserved"),
    [
        ("", set()),
        ("[sources.frc]\nenabled = true\n", {"/FRC/pit/*"}),
        ('[sources.teleop]\nenabled = true\nname = "site"\n', {"/Teleop/site/*"}),
        ("[sources.frc]\nenabled = true\nwrite_fms_info = true\n", {"/FRC/pit/*", "/FMSInfo/*"}),
        ("[sources.frc]\nenabled = true\nwrite_driver_station = true\n", {"/FRC/pit/*", "/DriverStation/*"}),
        ("[sources.frc]\nwrite_fms_info = true\n", set()),
    ],
)
def test_phones_may_not_put_what_a_source_publishes(tmp_path: Path, text: str, reserved: set[str]) -> None:
    path = tmp_path / "aoabridge.toml"
    path.write_text(f'name = "pit"\n{text}')
    config = load_config(path).config
    assert config is not None
    roots = ("/FRC", "/J519", "/Teleop", "/FMSInfo", "/DriverStation")
    assert {pattern for pattern in core_settings(config).own_patterns if pattern.startswith(roots)} == reserved
