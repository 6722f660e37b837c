"""Live views for a person at a terminal; the only user of rich."""

from types import TracebackType
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

from aoabridge.cli.output import printable

__all__ = ["DemoView"]

LINE_WIDTH = 110


class DemoView:
    """The demo's chain, rates, latencies and last lines, redrawn once per second."""

    def __init__(self) -> None:
        self._console = Console()
        self._live = Live(Text("starting …"), console=self._console, auto_refresh=False)
        self._summary: dict[str, Any] | None = None

    def __enter__(self) -> "DemoView":
        self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._live.stop()

    def show(self, event: dict[str, Any]) -> None:
        """Draw a tick; keep the summary for the end."""
        if event["type"] == "summary":
            self._summary = event
        else:
            self._live.update(_picture(event), refresh=True)

    def conclude(self) -> None:
        """Print the summary, if the run came to one."""
        summary = self._summary
        if summary is None:
            return
        if "error" in summary:
            self._console.print(summary["error"])
        elif summary["ok"]:
            self._console.print(Text("OK  data flowed both ways without error", "bold green"))
        else:
            self._console.print(Text("FAILED  see the errors above", "bold red"))


def _picture(event: dict[str, Any]) -> Panel:
    chain = Table.grid(padding=(0, 2))
    phones = "\n".join(f"{phone['name']}  {phone['state']}" for phone in event["phones"])
    robot = event["robot"]
    rates = event["rates"]
    chain.add_row("PHONES", "", "BRIDGE", "", "ROBOT (simulated, not a robot)")
    chain.add_row(
        phones,
        f"{rates['phone_to_robot_hz']:.0f} put/s ──►\n◄── {rates['robot_to_phone_hz']:.0f} value/s",
        event["sentence"],
        "◄──►",
        f"{robot['state']}  {robot['address'] or '-'}",
    )
    figures = Table.grid(padding=(0, 2))
    for name, key in (("robot to phone", "robot_to_phone"), ("phone to robot", "phone_to_robot")):
        latency = event["latency_ms"][key]
        figures.add_row(name, f"p50 {latency['p50'] or 0:.2f} ms", f"p99 {latency['p99'] or 0:.2f} ms")
    lines: list[Text] = []
    for last in event["last"][:2]:
        lines.append(Text(f"to phone    {printable(last['to_phone'])[:LINE_WIDTH]}", "cyan"))
        lines.append(Text(f"from phone  {printable(last['from_phone'])[:LINE_WIDTH]}", "magenta"))
    errors = Text(f"errors {event['phone']['errors']}   refused puts {event['puts']['refused']}")
    title = f"aoabridge demo  {event['seconds']:.0f} s  {event['topics']} topics"
    return Panel(Group(chain, Text(""), figures, Text(""), *lines, Text(""), errors), title=title)
