"""The cases inside the virtual machine: the package on a real kernel, its device manager and its service manager."""

import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from vm import guest

RIG = "/run/vhci.sock"
SECOND_PHONE = Path("/run/second-phone")  # when it was plugged in
DEVICES = Path("/sys/bus/usb/devices")
NATIVE, ACCESSORY = "04e8", "18d1"
UNPLUGS = 2
PULLED_S = 3.5  # a phone that is back within 3 s has not been unplugged but left by itself, and is given time
STEP_S = 0.02  # of the traffic


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


def live():
    """How many phones are."""
    return list(guest.phones().values()).count("live")


def moment(name):
    """A time of the unit, in seconds of the monotonic clock."""
    return int(guest.show(f"{name}Monotonic")) / 1e6


class Traffic:
    """Values both ways, as fast as the machine is, from the first phone's app and from the robot."""

    def __init__(self, robot, topic):
        self.robot = robot
        self.topic = topic
        self.phones = guest.Phones(RIG)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self._run)

    def _run(self):
        number = 0.0
        while not self.ended.wait(STEP_S):
            number += 1.0
            self.robot.say()
            self.phones.do("say", "p1", text=f'{{"action":"put","key":"{self.topic}","value":{number}}}\n')

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()


def case_phones_plugged_before_and_during_boot():
    """One was there before the device manager, the other came while the service was starting."""
    plugged = float(SECOND_PHONE.read_text())
    assert moment("ExecMainStartTimestamp") < plugged < moment("ActiveEnterTimestamp"), (
        "it did not come during the start"
    )
    guest.wait("two live phones", lambda: live() == 2)
    assert granted(ACCESSORY)


def case_relay_of_two_phones(robot, rig):
    guest.relay_both_ways(robot, rig, "p1")
    guest.relay_both_ways(robot, rig, "p2", topic="/second/phone")
    rig.do("unplug", "p2")
    guest.wait("one live phone", lambda: live() == 1)


def case_native_phone_is_granted(rig):
    """Without the service nothing switches it: its node is what the rule made of it."""
    guest.run("systemctl", "stop", guest.UNIT)
    rig.do("unplug", "p1")
    rig.do("plug", "p1")
    guest.wait("native phone granted", lambda: granted(NATIVE))


def case_phone_before_the_service(robot, rig):
    guest.run("systemctl", "start", guest.UNIT)
    guest.wait_phone()
    assert granted(ACCESSORY)
    guest.relay_both_ways(robot, rig, "p1", topic="/after/start")


def case_unplug_and_replug(robot, rig):
    rig.do("unplug", "p1")
    guest.wait("phone gone", lambda: not live())
    rig.do("plug", "p1")
    guest.wait_phone()
    assert granted(ACCESSORY)
    guest.relay_both_ways(robot, rig, topic="/after/replug")


def case_unplug_in_traffic(robot, rig):
    """Whatever was on its way: the values go with the link, and the next plug is served by the same process."""
    before = guest.show("MainPID", "NRestarts")
    for number in range(UNPLUGS):
        topic = f"/in/traffic/{number}"
        with Traffic(robot, topic):
            guest.wait("values from the app", lambda topic=topic: (robot.value(topic) or 0.0) > 5.0)
            heard = len(rig.heard("p1"))
            guest.wait("values for the app", lambda heard=heard: len(rig.heard("p1")) > heard + 5)
            rig.do("unplug", "p1")
            pulled = time.monotonic()
            guest.wait("phone gone", lambda: not live())
            guest.wait("its topic gone", lambda topic=topic: not robot.instance.getTopic(topic).exists())
        time.sleep(max(0.0, pulled + PULLED_S - time.monotonic()))
        rig.do("plug", "p1")
        guest.wait_phone()
        guest.relay_both_ways(robot, rig, topic=f"/after/traffic/{number}")
    assert guest.show("MainPID", "NRestarts") == before


def case_unplugged(rig):
    """What follows has work enough for an emulated processor without a phone."""
    rig.do("unplug", "p1")
    guest.wait("no phone", lambda: not live())


def case_install_finds_the_phone(robot, rig):
    """The package comes to a machine at which a phone waits, which nothing has granted or switched."""
    rig.do("plug", "p1")
    guest.wait("the phone is there", lambda: devices(NATIVE))
    guest.case_install_is_ready(emulated=True)
    guest.wait_phone()
    assert granted(ACCESSORY)
    guest.choose_robot()
    guest.run("systemctl", "reload", guest.UNIT)
    guest.relay_both_ways(robot, rig, topic="/after/install")


def case_phone_of_the_gadget_stack(robot):
    """Stalls, timeouts and the re-enumeration of a device side that is not ours."""
    for module in ("dummy_hcd", "libcomposite", "usb_f_fs"):
        guest.run("modprobe", module)
    program = str(Path(__file__).with_name("functionfs_phone.py"))
    before = live()
    with subprocess.Popen(["/usr/bin/python3", "-B", program]) as phone:
        try:
            guest.wait("the gadget is live", lambda: live() == before + 1)
            assert granted(ACCESSORY)
            number = robot.say()
            guest.wait("the gadget's answer", lambda: robot.value("/from/gadget") == number + 0.5)
        finally:
            phone.terminate()
    guest.wait("the gadget is gone", lambda: live() == before)


def case_device_policy_is_in_force():
    """The rule and the unit together: the service opens phones and nothing else."""
    assert guest.show("DevicePolicy") == "closed"
    assert "char-usb_device" in guest.show("DeviceAllow")


def case_the_rig_saw_nothing_wrong(rig):
    assert rig.do("stats")["problems"] == []


def cases(robot, rig, short):
    both = (robot, rig)
    found = [
        (guest.case_boot_is_ready, ()),
        (case_phones_plugged_before_and_during_boot, ()),
        (guest.case_reload_takes_the_robot, ()),
        (guest.case_sandbox_is_in_force, ()),
        (case_device_policy_is_in_force, ()),
        (case_relay_of_two_phones, both),
        (case_unplug_and_replug, both),
        (case_unplug_in_traffic, both),
        (guest.case_restart_with_phone_in_accessory_mode, both),
        (case_native_phone_is_granted, (rig,)),
        (case_phone_before_the_service, both),
    ]
    if not short:
        found += [
            (case_phone_of_the_gadget_stack, (robot,)),
            (guest.case_killed_service_comes_back, both),
            (case_unplugged, (rig,)),
            (guest.case_broken_upgrade_keeps_the_running_one, ()),
            (guest.case_upgrade_that_does_not_start_is_taken_back, ()),
            (guest.case_upgrade, ()),
            (guest.case_remove_and_purge, ()),
            (case_install_finds_the_phone, both),
        ]
    return [*found, (case_the_rig_saw_nothing_wrong, (rig,)), (guest.case_remove_and_purge, ())]


def main():
    guest.run("ip", "link", "set", "lo", "up")
    guest.run("ip", "addr", "add", "10.99.0.1/32", "dev", "lo")  # a client of ntcore needs an address
    print("DRIVER", flush=True)
    guest.play(cases(guest.Robot(), guest.Phones(RIG), "--short" in sys.argv), sys.stdout)


if __name__ == "__main__":
    try:
        main()
    finally:
        subprocess.run(["systemctl", "poweroff", "--no-block"], check=True)
