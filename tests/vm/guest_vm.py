"""The cases inside the virtual machine: the package on a real kernel, its device manager and its service manager."""

import json
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from vm import guest

RIG = "/run/vhci.sock"
DEVICES = Path("/sys/bus/usb/devices")
NATIVE, ACCESSORY = "04e8", "18d1"
CASE = {"phones": [{"name": "p1", "app": "known"}, {"name": "p2", "app": "known"}]}


def devices(vendor):
    """The devices of a maker as sysfs directories."""
    found = []
    for path in DEVICES.glob("*-*"):
        try:
            if (path / "idVendor").read_text().strip() == vendor:
                found.append(path)
        except OSError:
            continue  # just gone
    return found


def granted(vendor):
    """True if every device of this maker is the service's."""
    group = guest.run("getent", "group", "aoabridge")[1].split(":")[2]
    for path in devices(vendor):
        try:
            numbers = [int((path / name).read_text()) for name in ("busnum", "devnum")]
            node = Path("/dev/bus/usb/{:03}/{:03}".format(*numbers)).stat()
            power = (path / "power/control").read_text().strip()
        except OSError:
            return False
        if (node.st_mode & 0o777, str(node.st_gid), power) != (0o660, group, "on"):
            return False
    return bool(devices(vendor))


def case_native_phone_is_granted(rig):
    """Without the service nothing switches it: its node is what the rule made of it."""
    guest.run("systemctl", "stop", guest.UNIT)
    rig.do("plug", "p1")
    guest.wait("native phone granted", lambda: granted(NATIVE))


def case_phone_before_the_service(robot, rig):
    guest.run("systemctl", "start", guest.UNIT)
    guest.wait_phone()
    assert granted(ACCESSORY)
    guest.relay_both_ways(robot, rig, "p1")


def case_unplug_and_replug(robot, rig):
    rig.do("unplug", "p1")
    guest.wait("phone gone", lambda: "live" not in guest.phones().values())
    rig.do("plug", "p1")
    guest.wait_phone()
    assert granted(ACCESSORY)
    guest.relay_both_ways(robot, rig, "p1", topic="/after/replug")


def case_unplugged(rig):
    """What follows has work enough for an emulated processor without a phone."""
    rig.do("unplug", "p1")
    guest.wait("no phone", lambda: "live" not in guest.phones().values())


def case_second_phone(robot, rig):
    rig.do("plug", "p2")
    guest.wait("two live phones", lambda: list(guest.phones().values()).count("live") == 2)
    guest.relay_both_ways(robot, rig, "p2", topic="/second/phone")
    rig.do("unplug", "p2")
    guest.wait("one live phone", lambda: list(guest.phones().values()).count("live") == 1)


def case_phone_of_the_gadget_stack(robot):
    """Stalls, timeouts and the re-enumeration of a device side that is not ours."""
    for module in ("dummy_hcd", "libcomposite", "usb_f_fs"):
        guest.run("modprobe", module)
    program = str(Path(__file__).with_name("functionfs_phone.py"))
    before = list(guest.phones().values()).count("live")
    with subprocess.Popen(["/usr/bin/python3", "-B", program]) as phone:
        try:
            guest.wait("the gadget is live", lambda: list(guest.phones().values()).count("live") == before + 1)
            assert granted(ACCESSORY)
            number = robot.say()
            guest.wait("the gadget's answer", lambda: robot.value("/from/gadget") == number + 0.5)
        finally:
            phone.terminate()
    guest.wait("the gadget is gone", lambda: list(guest.phones().values()).count("live") == before)


def case_device_policy_is_in_force():
    """The rule and the unit together: the service opens phones and nothing else."""
    assert guest.show("DevicePolicy") == "closed"
    assert "char-usb_device" in guest.show("DeviceAllow")


def case_the_rig_saw_nothing_wrong(rig):
    assert rig.do("stats")["problems"] == []


def cases(robot, rig, short):
    both = (robot, rig)
    found = [
        (guest.case_boot_is_ready, ()) if short else (guest.case_install_is_ready, (True,)),
        (guest.case_reload_takes_the_robot, ()),
        (guest.case_sandbox_is_in_force, ()),
        (case_device_policy_is_in_force, ()),
        (case_native_phone_is_granted, (rig,)),
        (case_phone_before_the_service, both),
        (case_unplug_and_replug, both),
        (guest.case_restart_with_phone_in_accessory_mode, both),
    ]
    if not short:
        found += [
            (case_second_phone, both),
            (case_phone_of_the_gadget_stack, (robot,)),
            (guest.case_killed_service_comes_back, both),
            (case_unplugged, (rig,)),
            (guest.case_broken_upgrade_keeps_the_running_one, ()),
            (guest.case_upgrade_that_does_not_start_is_taken_back, ()),
            (guest.case_upgrade, ()),
        ]
    return [*found, (case_the_rig_saw_nothing_wrong, (rig,)), (guest.case_remove_and_purge, ())]


def main():
    guest.run("modprobe", "vhci-hcd")
    guest.run("ip", "link", "set", "lo", "up")
    guest.run("ip", "addr", "add", "10.99.0.1/32", "dev", "lo")  # a client of ntcore needs an address
    program = str(Path(__file__).with_name("vhci_phone.py"))
    with subprocess.Popen(["/usr/bin/python3", "-B", program, json.dumps(CASE), RIG]) as rig_process:
        guest.play(cases(guest.Robot(), guest.Phones(RIG), "--short" in sys.argv), sys.stdout)
        rig_process.kill()


if __name__ == "__main__":
    try:
        main()
    finally:
        subprocess.run(["systemctl", "poweroff", "--no-block"], check=True)
