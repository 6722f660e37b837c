"""Figures of the machine from a tree of small files; what is not there is unknown."""

from pathlib import Path

from aoabridge.adapters.host import HostProbe


def tree(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_a_board_tells_temperature_memory_and_throttling(tmp_path: Path) -> None:
    root = tree(
        tmp_path,
        {
            "proc/self/statm": "30000 11264 5000 1 0 9000 0\n",
            "sys/class/thermal/thermal_zone0/type": "gpu-thermal\n",
            "sys/class/thermal/thermal_zone0/temp": "40000\n",
            "sys/class/thermal/thermal_zone1/type": "cpu-thermal\n",
            "sys/class/thermal/thermal_zone1/temp": "52123\n",
            "sys/class/hwmon/hwmon0/name": "rpi_volt\n",
            "sys/class/hwmon/hwmon0/in0_lcrit_alarm": "1\n",
        },
    )
    figures = HostProbe(tmp_path, root).read()
    assert figures.temp_c == 52.123
    assert figures.rss_mib is not None
    assert figures.rss_mib > 0
    assert figures.throttled is True
    assert figures.disk_free_mib is not None
    assert figures.read_only is False


def test_the_firmwares_word_tells_about_now_only(tmp_path: Path) -> None:
    name = "sys/devices/platform/soc/soc:firmware/get_throttled"
    words = {"0\n": False, "50005\n": True, "50000\n": False, "4\n": True, "junk\n": None}
    for word, expected in words.items():
        assert HostProbe(None, tree(tmp_path, {name: word})).read().throttled is expected


def test_an_empty_machine_knows_nothing(tmp_path: Path) -> None:
    figures = HostProbe(tmp_path / "gone", tmp_path).read()
    assert (figures.rss_mib, figures.temp_c, figures.throttled) == (None, None, None)
    assert (figures.disk_free_mib, figures.read_only) == (None, None)


def test_this_machine_tells_its_own_memory_and_work() -> None:
    probe = HostProbe(Path("/"))
    while (percent := probe.read().cpu_percent) is None:
        sum(range(100_000))
    assert 0 < percent < 200
