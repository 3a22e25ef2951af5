"""One of several processes of a service. Started by `workers`, which hands settings over by a pipe.

A password in the URL of the store is so on no command line and in no environment, which other users could read.
The pipe stays open: when it ends, whoever started this process is gone, and it ends as well.
"""

from __future__ import annotations

import os
import pickle
import signal
import socket
import sys
import threading
from dataclasses import dataclass

from doral.service.settings import ServiceSettings
from doral.service.spreading.spread import Neighbours

READY = b"ready\n"


@dataclass(frozen=True, kw_only=True)
class Orders:
    """What a worker is told."""

    settings: ServiceSettings
    counts: str  # folder in which all workers count, and meet: nobody else's user may enter it
    place: int  # of this worker among them


def main(socket_number: int) -> None:
    """The whole life of a worker. Its standard input holds the orders, its standard output takes one word."""
    orders: Orders = pickle.load(sys.stdin.buffer)  # of the process that started this one
    os.environ["PROMETHEUS_MULTIPROC_DIR"] = orders.counts  # read when the module is imported, which is below
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all at the terminal; the first process tells us

    threading.Thread(target=_end_with_parent, args=(sys.stdin.fileno(),), daemon=True).start()
    from doral.service.operations.running import run_here

    with socket.socket(fileno=socket_number) as listening:
        where = Neighbours(place=orders.place, of=orders.settings.workers, folder=orders.counts)
        run_here(orders.settings, listening, _say_ready, where=where)


def _say_ready() -> None:
    sys.stdout.buffer.write(READY)
    sys.stdout.buffer.flush()


def _end_with_parent(pipe: int) -> None:
    os.read(pipe, 1)  # nothing more is sent: it returns when the other end is gone
    os.kill(os.getpid(), signal.SIGTERM)
