"""A phone that is plugged in somewhere else takes with it what is known of it."""

from msgspec.structs import replace

from aoabridge.phone.actions import PortState, Probe
from aoabridge.phone.filter import DeviceRules
from aoabridge.phone.ports import PortTable
from fakes.port_bench import native

A = native(5, serial="A1111")
B = replace(native(6, serial="B2222"), port="1-2")


def two_that_refuse() -> PortTable:
    table = PortTable(DeviceRules())
    for port_id, _ in table.on_scan([A, B], 10.0):
        table.on_result(port_id, "probe", 0, 10.0)
    return table


def test_to_a_port_that_another_one_has_left() -> None:
    table = two_that_refuse()
    table.on_scan([], 11.0)
    assert table.on_scan([replace(A, port="1-2", devnum=9)], 12.0) == []
    states = {view.serial: (view.port_id, view.port, view.state) for view in table.views()}
    assert states["A1111"] == (1, "1-2", PortState.NOT_AOA)  # it has refused, and did not leave for long
    assert states["B2222"] == (2, "1-1", PortState.ABSENT)


def test_not_to_a_port_where_another_one_still_is() -> None:
    table = two_that_refuse()
    table.on_scan([B], 11.0)
    twin = replace(A, port="1-2", devnum=9)
    ((port_id, action),) = table.on_scan([twin], 11.1)  # the other one left in the same moment
    assert (port_id, action) == (2, Probe(twin))
