"""Accessory cases that the source or the udev rule decides."""

import ast
import re
from pathlib import Path

import pytest

from contract.cases import failures, load_runs
from contract.evidence import Measured
from fakes.profile import Profile, device_view
from rig.test_udev_rule import is_granted, udevadm_test

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "aoabridge"
STATIC = load_runs("static")
UDEV = load_runs("udev")
ASYNCHRONOUS = re.compile(r"libusb_(submit_transfer|handle_events|alloc_transfer)|handleEvents|\.submit\(")
BLOCKING = {"probe", "open", "close", "reset", "read", "write", "clear_halt_in", "clear_halt_out"}
USB_OBJECTS = {"usb", "pipe"}
STATIC_METRICS = ("event_poller_thread", "async_usb_api_used", "usb_calls_on_loop_thread")
UDEV_METRICS = ("udev_group", "udev_mode", "udev_tag", "udev_sets_power_on")


def only(names, expect):
    return [entry for entry in expect if entry[0] in names]


def direct_calls(tree):
    """USB calls that a function of the loop makes itself, not through a nested function for an attach thread."""
    found = []

    def visit(node, depth):
        nested = depth + isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and nested == 1:
            owner = node.func.value
            name = owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")
            if name in USB_OBJECTS and node.func.attr in BLOCKING:
                found.append(f"{name}.{node.func.attr}:{node.lineno}")
        for child in ast.iter_child_nodes(node):
            visit(child, nested)

    visit(tree, 0)
    return found


def importers_of(module):
    names = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            modules = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            modules += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            if any(name == module or name.startswith(f"{module}.") for name in modules):
                names.add(path.relative_to(PACKAGE).as_posix())
    return names


def static_metrics():
    sources = "".join(path.read_text() for path in (PACKAGE / "adapters").glob("usb*.py"))
    asynchronous = bool(ASYNCHRONOUS.search(sources))
    on_loop = direct_calls(ast.parse((PACKAGE / "daemon" / "phones.py").read_text()))
    return Measured(
        {
            "event_poller_thread": asynchronous,
            "async_usb_api_used": asynchronous,
            "usb_calls_on_loop_thread": len(on_loop),
        }
    )


def test_only_one_module_talks_to_the_library():
    assert importers_of("usb") == {"adapters/usb.py"}


@pytest.mark.parametrize("run", STATIC, ids=lambda run: run.ident)
def test_static_case(run):
    expect = only(STATIC_METRICS, run.expect)
    assert expect
    assert failures(expect, static_metrics()) == []


def udev_results(profile, tmp_path):
    """What the rule does to each identity of the phone, metric by metric."""
    modes = ["native"] if profile.protocol is None else ["native", "accessory"]
    outputs = []
    for mode in modes:
        view = device_view(profile, mode)
        interfaces = ["".join(f"{part:02x}" for part in item.triple) for item in view.interfaces]
        ids = f"{view.vendor:04x}:{view.product:04x}"
        outputs.append(udevadm_test(tmp_path, "add", ids, f"{view.device[4]:02x}", interfaces))
    granted = [is_granted(output) for output in outputs]
    found = {
        "udev_group": ["aoabridge" if grant else None for grant in granted],
        "udev_mode": [match(r"70-aoabridge\.rules:\d+ MODE (\d+)", output) for output in outputs],
        "udev_tag": ["uaccess" if ":uaccess:" in output else None for output in outputs],
        "udev_sets_power_on": [True if "/power/control' writing 'on'" in output else None for output in outputs],
    }
    return {name: values[0] if len(set(values)) == 1 else values for name, values in found.items()}


def match(pattern, text):
    hit = re.search(pattern, text)
    return hit and hit.group(1)


@pytest.mark.parametrize("run", UDEV, ids=lambda run: run.ident)
def test_udev_case(run, tmp_path):
    expect = only(UDEV_METRICS, run.expect)
    assert expect
    profiles = [Profile.from_case(entry, index) for index, entry in enumerate(run.phones)]
    results = {profile.name: udev_results(profile, tmp_path) for profile in profiles}
    for entry in expect:
        phone = entry[3] if len(entry) > 3 else profiles[0].name
        assert failures([entry[:3]], Measured(results[phone])) == []
