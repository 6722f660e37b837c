"""Runs one example robot in WPILib simulation and plays the phone; prints what happened as JSON.

Usage: sim_robot.py EXAMPLE_FILE HOW, with HOW phone (press in teleop) or auto (started by robot code).
"""

import importlib.util
import json
import sys
import threading
from pathlib import Path

import hal
import hal.simulation
import ntcore
import wpilib.simulation
from wpilib.simulation import DriverStationSim

sys.path.insert(0, str(Path(__file__).parent))
from plan_rig import EXAMPLE

MAX_LOOPS = 3000
MODE_LOOPS = 5
START = (1.0, 2.0, 0.0)


def load(file):
    sys.path.insert(0, str(file.parent))
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[file.stem] = module
    spec.loader.exec_module(module)
    return module.MyRobot


def boot(file):
    """Start the robot program in a thread, disabled, with the clock in our hand."""
    hal.initialize(500, 0)
    wpilib.simulation.pauseTiming()
    wpilib.simulation.restartTiming()
    DriverStationSim.setDsAttached(True)
    DriverStationSim.setAllianceStationId(hal.AllianceStationID.kBlue1)
    DriverStationSim.setAutonomous(False)
    DriverStationSim.setEnabled(False)
    DriverStationSim.notifyNewData()
    robot = load(file)()
    thread = threading.Thread(target=robot.startCompetition, daemon=True)
    thread.start()
    started = threading.Event()
    while not hal.simulation.getProgramStarted():
        started.wait(0.01)
    return robot, thread


def enable(loop):
    """The robot's thread changes its mode in its own time: the clock must not run away from it meanwhile."""
    DriverStationSim.setEnabled(True)
    moment = threading.Event()
    for _ in range(MODE_LOOPS):
        loop()
        moment.wait(0.05)


def main():
    file, how = Path(sys.argv[1]), sys.argv[2]
    robot, thread = boot(file)
    table = ntcore.NetworkTableInstance.getDefault()
    plan = table.getStringTopic("/RoboRoute/Plan").publish()
    press = table.getBooleanTopic("/RoboRoute/RunPlan").publish()
    beat = table.getDoubleTopic("/RoboRoute/Heartbeat").publish()
    state = table.getStringTopic("/RoboRoute/Status/State").subscribe("")
    refused = table.getStringTopic("/RoboRoute/Status/Refused").subscribe("")
    loops = 0

    def loop():
        nonlocal loops
        if loops % 25 == 0:
            beat.set(1000.0 + loops)
        loops += 1
        DriverStationSim.notifyNewData()
        wpilib.simulation.stepTiming(0.02)

    def until(*wanted):
        while state.get() not in wanted:
            loop()
            if loops > MAX_LOOPS:
                raise SystemExit(f"still {state.get()} refused={refused.get()}")

    for _ in range(50):
        loop()
    plan.set(EXAMPLE)
    until("STAGED", "READY")
    if how == "auto":
        while not planner(robot).status.plan_id or planner(robot).control.staging.missing:
            loop()
        DriverStationSim.setAutonomous(True)
        enable(loop)
    else:
        enable(loop)
        until("READY")
        press.set(True)
    trace = [START]
    while planner(robot).status.state not in ("DONE", "FAILED", "CANCELLED"):
        loop()
        at = swerve(robot).at
        if trace[-1] != (at.x, at.y, at.rotation):
            trace.append((at.x, at.y, at.rotation))
        if loops > MAX_LOOPS:
            raise SystemExit(f"still running {planner(robot).status.running}")
    end = planner(robot).status.state
    for _ in range(25):
        loop()
    at = swerve(robot).at
    answer = {
        "end": end,
        "pose": trace[-1],
        "trace": trace,
        "moved_after": trace[-1] != (at.x, at.y, at.rotation),
        "pieces": robot.pieces if hasattr(robot, "pieces") else robot.intake.pieces,
        "source": planner(robot).status.run_source,
        "error": planner(robot).status.error,
    }
    print("RESULT " + json.dumps(answer), flush=True)
    robot.endCompetition()
    loop()
    thread.join(2.0)
    planner(robot).close()


def planner(robot):
    return robot.rr if hasattr(robot, "rr") else robot.planner.rr


def swerve(robot):
    return robot.swerve if hasattr(robot, "swerve") else robot.drive.swerve


main()
