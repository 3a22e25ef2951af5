"""No secret is in any line of a log, in any answer, or in any file: whatever was sent, and however it ended."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

import doral
from doral.service.access.keys import new_key, read_key
from doral.service.settings import Limits, ServiceSettings
from tests.service.harness import PROBLEM, serving

_OF_THE_CLIENT = ("http", "hpack", "h11")  # loggers of whoever asks, who knows the key


class Records(logging.Handler):
    """All lines of all loggers, with whatever was to be put into them."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        if not record.name.startswith(_OF_THE_CLIENT):
            more = {name: value for name, value in vars(record).items() if name not in ("msg", "args")}
            self.lines.append(f"{self.format(record)} {record.msg!r} {record.args!r} {more!r}")


@pytest.fixture
def records() -> Iterator[Records]:
    root = logging.getLogger()
    everybody = [root, *(one for one in logging.root.manager.loggerDict.values() if isinstance(one, logging.Logger))]
    levels = [(one, one.level) for one in everybody]
    handler = Records()
    root.addHandler(handler)
    for one in everybody:
        one.setLevel(logging.DEBUG)
    yield handler
    root.removeHandler(handler)
    for one, level in levels:
        one.setLevel(level)


def test_no_secret_is_anywhere(records: Records, tmp_path: Path) -> None:
    storage = f"sqlite:///{tmp_path / 'campaigns.db'}"
    secrets: list[str] = []
    answers: list[str] = []
    settings = ServiceSettings(storage=storage, limits=Limits(sign_in_failures=12))
    with serving(storage, settings) as service:
        books, now = service.store.books, time.time()
        service.store.create("kits", PROBLEM)
        keys = [
            service.key,
            service.make_key("read"),
            service.make_key("decide", campaigns=["kits"]),
            service.make_key("admin", campaigns=["elsewhere"]),
            service.make_key("admin", expires_in_s=0.001),
            new_key("unknown", ["admin"], now=now)[1],
            service.make_key("admin"),
        ]
        revoked = read_key(keys[-1])
        assert revoked is not None
        books.revoke_key(revoked.id, now)
        first = read_key(service.key)
        assert first is not None
        row, session = new_key("session", ["admin"], now=now, parent=first.id)
        books.add_key(row)
        keys += [session, keys[0][:-1], f"{keys[0]}x"]
        secrets += [key[19:] for key in keys]
        with httpx2.Client(base_url=service.url) as client:
            for key in keys:
                for headers in (
                    {"Authorization": f"Bearer {key}"},
                    {"Authorization": key},
                    {"Cookie": f"doral={key}"},
                    {"Cookie": f"doral={key}", "Origin": service.url},
                ):
                    for method, path in (
                        ("GET", "/v1/acts"),
                        ("GET", "/v1/me"),
                        ("POST", "/v1/campaigns/kits/decisions"),
                        ("POST", "/new"),
                        ("GET", "/new"),
                    ):
                        body = {"json": {"context": "young"}} if path.startswith("/v1") else {"data": {"csrf": key}}
                        answer = client.request(method, path, headers=headers, **(body if method == "POST" else {}))  # type: ignore[arg-type]
                        answers.append(f"{answer.headers!r} {answer.text}")
                answer = client.post("/sign-in", data={"key": key}, headers={"Origin": service.url})
                secrets += [key[19:] for key in answer.cookies.values()]
                answers.append(answer.text)
                client.cookies.clear()
        files = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    with doral.open(storage) as store:
        acts = repr(store.books.acts(limit=1_000))
        assert store.campaign("kits").report().decisions
    files += b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert len(records.lines) > 10
    assert b"kits" in files
    for secret in secrets:
        secret = secret[:40]
        assert secret.encode() not in files
        assert secret not in acts
        assert not [line for line in records.lines if secret in line]
        assert not [answer for answer in answers if secret in answer]
