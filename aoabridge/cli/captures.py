"""``aoabridge decode --pcap``: the packets of one protocol in a capture."""

import argparse
import sys
from collections.abc import Iterator
from typing import Any

from aoabridge.cli.exits import CommandError, Exit
from aoabridge.cli.lines import line_codec, open_input, show_decoded
from aoabridge.cli.output import warn
from aoabridge.codecs.frc_ds import FrameReader
from aoabridge.codecs.host_port import join_host_port
from aoabridge.codecs.line_codecs import Options
from aoabridge.codecs.pcap import Capture, Datagram, StreamData
from aoabridge.codecs.protocols import PROTOCOLS, CaptureRule
from aoabridge.errors import DecodeError

__all__ = ["decode_capture"]


def decode_capture(args: argparse.Namespace, options: Options) -> Exit:
    """Decode what the ports say is of the protocol; NEGATIVE if any of it failed."""

    rule = PROTOCOLS[args.proto].capture
    if rule is None:
        raise CommandError(f"{args.proto} is not found in captures", Exit.USAGE)
    ports = frozenset(args.port or rule.ports)
    with open_input(args.file) as stream:
        data = stream.read()
    try:
        capture = Capture(data, ports)
    except DecodeError as error:
        raise CommandError(f"{args.file}: {error}", Exit.NO_INPUT) from None
    codecs = {port: line_codec(args, options, port) for port in ports}
    status = Exit.OK
    for packet, octets, port in _chosen(capture, args.proto, rule, ports):
        place: dict[str, Any] = {"frame": packet.frame, "time_s": packet.time_s}
        place |= {"src": join_host_port(*packet.src), "dst": join_host_port(*packet.dst)}
        if not show_decoded(args.proto, codecs[port], octets, place):
            status = Exit.NEGATIVE
    return max(status, _report(args, capture))


def _chosen(
    capture: Capture, protocol: str, rule: CaptureRule, ports: frozenset[int]
) -> Iterator[tuple[Datagram | StreamData, bytes, int]]:
    """Yield the datagrams and frames of the protocol, each with the port that made it one."""

    readers: dict[int, FrameReader] = {}
    for packet in capture.packets():
        port = (packet.src if rule.side == "src" else packet.dst)[1]
        if port not in ports or isinstance(packet, Datagram) != (rule.transport == "udp"):
            continue
        if isinstance(packet, Datagram):
            yield packet, packet.data, port
            continue
        reader = readers.setdefault(packet.stream, FrameReader(protocol))
        for frame in reader.feed(packet.data):
            yield packet, frame.data, port
        if packet.end and reader.pending:
            warn(f"stream {packet.src[0]} to {packet.dst[0]} ends inside a frame: {reader.pending} bytes left over")


def _report(args: argparse.Namespace, capture: Capture) -> Exit:
    """Say on stderr what of the capture could not be used."""
    for count, what in (
        (capture.gaps, "streams ended at a gap"),
        (capture.fragments, "IP fragments left out"),
        (capture.cut_packets, "packets cut by the capture"),
    ):
        if count:
            print(f"{args.file}: {count} {what}", file=sys.stderr)
    if capture.cut is None:
        return Exit.OK
    warn(f"{args.file}: {capture.cut}")
    return Exit.NEGATIVE
