"""The robot of the campaign: an NT server with robotlib in one process, which writes down all it says and hears.

``robot.py PORT VARIANT``. One JSON line per note on standard output, times in microseconds of the machine's monotonic
clock. Every value it publishes *is* that time, so that each line of a phone proves when it was true. VARIANT turns
the topics' types and the layout of the struct.
"""

import json
import struct
import sys
import time
from pathlib import Path

import hal
import ntcore

sys.path[:0] = [str(Path(__file__).parents[1] / "robotlib"), str(Path(__file__).parents[2])]
from plan_rig import FakeDrive  # noqa: E402 (below the path)

from robotlib import DriveSettings, Pose2, RoboRoute, Settings  # noqa: E402
from robotlib.host import HostState, ManualHost  # noqa: E402

PERIOD_S = 0.02
VALUES_EVERY = 2  # loops: 25 values a second and topic
TOPICS = 8
KINDS = ("int", "double", "string", "struct")
LAYOUTS = {"int64 t;double half": struct.Struct("<qd"), "double half;int64 t": struct.Struct("<dq")}
HALF = 0.5  # read with the wrong layout it is no time at all
HEARD = ["/phone/", "/RoboRoute/Run", "/RoboRoute/Plan", "/RoboRoute/Heartbeat"]


def note(kind, **fields):
    sys.stdout.write(json.dumps({"note": kind, **fields}) + "\n")


def now_us():
    return time.monotonic_ns() // 1000


class Talker:
    """The topics with their times as values."""

    def __init__(self, instance, variant):
        options = ntcore.PubSubOptions(sendAll=True, keepDuplicates=True)
        self.offset_us = ntcore._now() - now_us()
        self.schema, self.layout = list(LAYOUTS.items())[variant % len(LAYOUTS)]
        self._schema = instance.getRawTopic("/.schema/struct:Sample").publishEx("structschema", {"retained": True})
        self._schema.set(self.schema.encode())
        self.setters = []
        for number in range(TOPICS):
            kind = KINDS[(number + variant) % len(KINDS)]
            name = f"/load/{number}"
            if kind == "int":
                publisher, form = instance.getIntegerTopic(name).publish(options), int
            elif kind == "double":
                publisher, form = instance.getDoubleTopic(name).publish(options), float
            elif kind == "string":
                publisher, form = instance.getStringTopic(name).publish(options), str
            else:
                publisher, form = instance.getRawTopic(name).publish("struct:Sample", options), self._packed
            self.setters.append((publisher, form))

    def _packed(self, at_us):
        fields = (at_us, HALF) if self.schema.startswith("int64") else (HALF, at_us)
        return self.layout.pack(*fields)

    def say(self):
        for publisher, form in self.setters:
            at_us = now_us()
            publisher.set(form(at_us), at_us + self.offset_us)


class Listener:
    """Everything that others put on the topics of phones."""

    def __init__(self, instance):
        options = ntcore.PubSubOptions(periodic=0.005, sendAll=True, keepDuplicates=True)
        self._multi = ntcore.MultiSubscriber(instance, HEARD, options)
        self._poller = ntcore.NetworkTableListenerPoller(instance)
        self._poller.addListener(self._multi, ntcore.EventFlags.kValueRemote)

    def tell(self):
        for event in self._poller.readQueue():
            data = event.data
            note("got", topic=data.topic.getName(), value=data.value.value(), at=now_us(), stamp=data.value.time())


def main(port, variant):
    hal.initialize(500, 0)
    instance = ntcore.NetworkTableInstance.create()
    listener = Listener(instance)
    drive = FakeDrive(Pose2(1.0, 2.0, 0.0))
    host = ManualHost(HostState(enabled=True, mode="teleop", alliance="blue"))
    rr = RoboRoute(
        host=host,
        drive=drive,
        drive_settings=DriveSettings(max_speed_mps=0.5),
        settings=Settings(max_gap_s=30.0),
        instance=instance,
    )
    talker = Talker(instance, variant)
    note("ready", at=now_us(), offset=talker.offset_us)
    sys.stdout.flush()
    sys.stdin.readline()  # whoever judges our values must know our clock before anybody hears one
    instance.startServer("", "127.0.0.1", 0, port)
    shown = None
    loops = 0
    while True:
        began = time.monotonic()
        rr.periodic()
        drive.move(PERIOD_S)
        if loops % VALUES_EVERY == 0:
            talker.say()
            instance.flushLocal()
        listener.tell()
        state = (rr.status.run_id, rr.status.state, drive.still)
        if state != shown:
            shown = state
            note("run", run_id=state[0], state=state[1], still=state[2], at=now_us())
        sys.stdout.flush()
        loops += 1
        time.sleep(max(0.0, PERIOD_S - (time.monotonic() - began)))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
