"""A real service on a free port of the loopback, in a thread of this process, with a key that may do everything."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import httpx2
import uvicorn
from fastapi import FastAPI

import doral
from doral.live.store import Store
from doral.service.access.keys import make_first_key, new_key
from doral.service.app import make_app
from doral.service.operations.lifespan import READY
from doral.service.settings import ServiceSettings

PROBLEM = doral.Problem(
    arms=[doral.Arm("letter", cost=1.0), doral.Arm("call", cost=3.0)],
    contexts={"young": 0.5, "old": 0.5},
    budget=1_000,
    horizon=1_000,
    deadline=3_600,
)


@dataclass(frozen=True, kw_only=True)
class Serving:
    """A service that runs."""

    url: str
    store: Store  # the very one that it uses
    key: str  # of an administrator
    app: FastAPI

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.key}"}

    def make_key(self, *roles: str, campaigns: Sequence[str] | None = None, expires_in_s: float | None = None) -> str:
        """Another key, with these roles; for these campaigns only, where some are given."""
        now = time.time()
        expires_at = None if expires_in_s is None else now + expires_in_s
        row, key = new_key("-".join(roles), roles, now=now, campaigns=campaigns, expires_at=expires_at)
        self.store.books.add_key(row)
        return key

    @contextmanager
    def client(self, key: str | None = None) -> Iterator[httpx2.Client]:
        """With the administrator's key, unless another is given."""
        headers = {"Authorization": f"Bearer {key or self.key}"}
        with httpx2.Client(base_url=self.url, headers=headers, timeout=30.0) as client:
            yield client


@contextmanager
def serving(storage: str = "memory://", settings: ServiceSettings | None = None) -> Iterator[Serving]:
    """A service on this store, with an empty one where none is named."""
    settings = replace(settings or ServiceSettings(storage=storage), storage=storage)
    store = doral.open(storage, code=settings.code)
    key = make_first_key(store.books, time.time()) or _another_key(store)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        app = make_app(settings, store)
        server = uvicorn.Server(uvicorn.Config(app, log_config=None, lifespan="on", server_header=False))
        app.state.is_stopping = lambda: server.should_exit
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
        thread.start()
        try:
            while not (server.started and app.state.readiness == READY):
                assert thread.is_alive(), "the service did not start"
                time.sleep(0.01)
            yield Serving(url=url, store=store, key=key, app=app)
        finally:
            server.should_exit = True
            thread.join(timeout=30)


def _another_key(store: Store) -> str:
    """Of an administrator, where the store has had keys before."""
    row, key = new_key("another", ["admin"], now=time.time())
    store.books.add_key(row)
    return key
