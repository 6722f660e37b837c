"""The shipped unit under a real service manager in a container, with real libusb and the emulated phone."""

import shutil
from pathlib import Path

import pytest

from rig.main_job import TalkingPhones
from rig.nspawn import boot
from vm.tree import base_tree, product, variant

pytestmark = [pytest.mark.usbfs, pytest.mark.timeout(900)]  # the first run makes the tree
CASES = 15


def test_the_unit_with_a_phone(tmp_path: Path) -> None:
    packages = tmp_path / "packages"
    packages.mkdir()
    package = product()
    shutil.copy(package, packages)
    variant(package, packages, "7.0.1", fault="import")
    variant(package, packages, "7.0.2", fault="start")
    variant(package, packages, "7.0.3")
    with TalkingPhones({"phones": [{"app": "known"}]}) as phones:
        result = boot(base_tree(), phones.root, packages, tmp_path / "console.txt")
    trouble = (tmp_path / "console.txt").read_text()
    if (packages / "driver.txt").exists():
        trouble += (packages / "driver.txt").read_text()
    print(result)
    assert "FAILED" not in result, result + trouble
    assert result.count("RESULT rc=") == result.count("RESULT rc=0") == 1, result + trouble
    assert result.count("CASE ") == CASES
