"""What limits each figure now, in one line each."""

from typing import Final

__all__ = ["limited_by"]

BY_NAME: Final = {  # beginning of a row's name -> what limits it; the longest that fits counts
    # Struct codecs.
    "decode Pose2d": "a dictionary per level of the struct; one closure per level more than by hand",
    "decode Pose2d / wpiutil": "the same; wpiutil makes an object per struct and we a dictionary",
    "decode Pose2d[100]": "the dictionaries of the elements; one unpack for all of them",
    "decode Pose3d": "four dictionaries; one closure per level more than by hand",
    "encode Pose2d": "the check of every field's presence and type, which by hand nobody does",
    "add and compile Pose3d": "reading the text of three schemas with regular expressions",
    "add 900 bit-fields": "reading 900 declarations with regular expressions",
    "compile 900 bit-fields": "a row of shifts and masks per field",
    # Packet codecs.
    "j519 checked Status decode": "four unpacks instead of one, so that the poses are tuples; the dispatch on the type",
    "j519 Status decode": "four unpacks instead of one, so that the poses are tuples; the dispatch on the type",
    "j519 Motion encode": "the sum of nine axes that must be finite, and their unpacking",
    "j519 Status to NT struct": "turning the bytes of 27 words round",
    "j519 Status to JSON fields": "a call of Python per field; for people and files, not for the cycle",
    "fms2ds-udp decode": "an object per flag byte, enumeration and date",
    "frc_ds decode": "an object per joystick and tag, each of its own length",
    "teleop checked uplink decode": "finding the packet by its length; comparing header and id",
    "teleop uplink encode": "reading eleven attributes one by one",
    # robotlib.
    "parse the example": "Python's JSON parser, then a check per field",
    "execute a loop": "the arithmetic of the drive in Python",
    "longest loop of": "the loop in which one pose is reached and the next begins",
    "the same with PathPlanner": "PathPlannerLib, which is Python too",
    "control loop without": "reading the inputs and telling the status, without any plan",
    # The NetworkTables adapter alone.
    "updates delivered": "the robot's process, which offers no more",
    "updates neither": "nothing; both ends of the span are cut at a round",
    "process CPU per update": "ntcore's thread, then its event objects: a new wrapper for each access",
    "put: offer": "the wake-up of ntcore's thread for the flush; p99 another program on the processor",
    # Stage by stage.
    "stage robot": "two wake-ups of ntcore's threads, in two processes, and the socket between them",
    "stage poller": "cold caches; the frame of ntcore is waited for to its end",
    "stage thread to loop": "the wake-up of the loop's thread and the interpreter lock",
    "stage loop: core": "cold caches: 20 values in 15 us when it runs without a pause",
    "stage loop: tick": "cold caches; a turn has the same steps with one value as with hundreds",
    "stage loop: build": "cold caches: 20 lines in 45 us when it runs without a pause",
    "stage loop to writer": "the wake-up of the writer's thread and the interpreter lock",
    "event to update": "ntcore's bindings: a new wrapper for each access",
    "core: take an update": "the look-up of the topic, the budget and a mark per phone",
    "core: line of it": "orjson for value and time, then a line object for what a transfer must remember",
    "core: both": "a bare orjson line knows no phone, no limit and no transfer",
    "core: a value of": "nothing grows with the number of topics",
    "core: a put line": "the JSON parser, the check of names and types, two looks at the owner",
    # End to end.
    "NT to phone": "two thread changes more than the floor: poller to loop, loop to writer",
    "put to robot": "the way over two sockets; p99 a put within 5 ms of another flush",
    "added latency down": "cold caches: the same steps cost a fifth when they run without a pause",
    "added latency up": "reader to loop, then the flush",
    "puts of one key": "5 ms between two flushes, which is ntcore's",
    "one topic at 100 Hz": "the same as NT to phone",
    "second subscribe": "two thread changes",
    "libusb": "the emulation: an ioctl is a message to another process",
    # Load.
    "robot without flush": "ntcore's own period of 100 ms",
    "50 x 100 Hz": "nothing: the writer is idle most of the time",
    "300 x 20 Hz": "two transfers of 16 KiB a round",
    "300 x 50 Hz": "ntcore's event objects, then building lines",
    "1000/s on": "two thread changes, as NT to phone",
    "5000/s on": "100 values a round: taking and building them, then a transfer of 0.2 ms",
    "15000/s on": "300 values a round: taking and building them takes 3 ms",
    "15000/s on 300 topics, 2 ms": "300 values a round and two transfers of 2 ms each",
    "30000/s on": "600 values a round of 300 topics: the newest of two wins; then as 15000/s",
    "CPU per value": "cold caches: a round touches 100 topics instead of 10; the core alone does not grow",
    "CPU per value and phone": "the poller's share is paid once for all phones",
    "100 000/s on": "ntcore's event objects: a third of a core",
    "100 000/s, phone": "a waiting value is a mark on its topic",
    # Sources.
    "both robot links": "cold memory: 50 wake-ups a second that decode, compare and set in 1 400 pages each",
    "both robot links at 50 Hz: CPU above idle of": "cold memory, of 350 pages; two flushes for one of the bridge",
    "received datagram": "decoding it and comparing its 22 values with what was said last",
    # Start, memory, idling.
    "exec to READY": "importing ntcore, orjson and our own modules",
    "aoabridge ": "starting Python",
    "python -c": "nothing of ours",
    # Idling.
    "idle: a page": "the machine: the caches, and the tables of memory of a virtual machine within another",
    "idle, connected": "ntcore's own thread, which wakes up 30 times a second; two heartbeats; cold memory",
    "one phone, 10": "ten wake-ups of four threads and two looks a second, all of them in cold memory",
    "RSS": "ntcore and Python's modules",
    "5 000 topics": "announcements, then one value each",
}


def limited_by(name: str) -> str:
    """What limits a figure; empty if nobody has said so yet."""
    fitting = [beginning for beginning in BY_NAME if name.startswith(beginning)]
    return BY_NAME[max(fitting, key=len)] if fitting else ""
