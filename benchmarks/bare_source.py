"""The bare source, to which the driver station source is compared: datagrams in, as many values set, nothing decoded.

No filter, no limits, no counters, no phones: the sockets, ntcore, and a loop of Python around them.
"""

import selectors
import socket
import time
from multiprocessing.connection import Connection
from typing import Final

import ntcore

from benchmarks.child import END

SETS: Final = 2  # values per datagram; the source has 200 a second of 100 datagrams
MAX_DATAGRAM: Final = 65_535


def bare_source(ports: tuple[int, ...], nt_port: int, parent: Connection) -> None:
    """As a ``child``, on these ports."""
    instance = ntcore.NetworkTableInstance.create()
    instance.setServer("127.0.0.1", nt_port)
    instance.startClient4("bare")
    while not instance.isConnected():
        time.sleep(0.01)
    options = ntcore.PubSubOptions(periodic=0.01, sendAll=True, keepDuplicates=True)
    selector = selectors.DefaultSelector()
    selector.register(parent, selectors.EVENT_READ)
    for port in ports:
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        sock.bind(("127.0.0.1", port))
        topics = [instance.getRawTopic(f"/bare/{port}/{number}") for number in range(SETS)]
        selector.register(sock, selectors.EVENT_READ, [topic.publish("raw", options) for topic in topics])
    parent.send("open")
    while True:
        for key, _ in selector.select():
            if key.fileobj is parent:
                if parent.recv() == END:
                    return
                parent.send(time.process_time())
                continue
            assert isinstance(key.fileobj, socket.socket)
            data = key.fileobj.recv(MAX_DATAGRAM)
            for publisher in key.data:
                publisher.set(data)
            instance.flush()
