"""What is noted of requests: identifiers, lines, numbers; streams that end with the service."""

from __future__ import annotations

import io
import json
import logging
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import httpx2
import pytest
from prometheus_client.exposition import generate_latest

import doral
from doral.live.store import open as open_store
from doral.service.operations import logs
from doral.service.operations import metrics as scraped
from doral.service.operations.metrics import MOST_CAMPAIGNS, Metrics, Standing, scrape
from tests.service.harness import PROBLEM, Serving, serving

_NAME = 'a "quoted" name\\'


@pytest.fixture(scope="module")
def here() -> Iterator[Serving]:
    with serving() as found:
        found.store.create("spring", PROBLEM)
        yield found


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    """What the service writes, while the test runs."""
    stream = io.StringIO()
    root, level = logging.getLogger(), logging.getLogger("doral").level
    handlers = list(root.handlers)
    logs.set_up_logs(stream)
    try:
        yield stream
    finally:
        logging.captureWarnings(capture=False)
        logging.getLogger("doral").setLevel(level)
        root.handlers[:] = handlers
        logging.raiseExceptions = True


def _told(stream: io.StringIO, within_s: float = 3.0) -> list[dict[str, object]]:
    end = time.monotonic() + within_s
    while not stream.getvalue() and time.monotonic() < end:
        time.sleep(0.02)
    return [json.loads(line) for line in stream.getvalue().splitlines()]


@pytest.mark.parametrize("given", ["abc-1", "a" * 128, "018f:2c/3+4=5@x_y.z"])
def test_a_sane_identifier_is_kept(here: Serving, given: str) -> None:
    with here.client() as client:
        assert client.get("/healthz", headers={"X-Request-Id": given}).headers["x-request-id"] == given


@pytest.mark.parametrize("given", ["", "a" * 129, "a b", "<script>", "a\tb", "é", "-x"])
def test_any_other_is_replaced(here: Serving, given: str) -> None:
    with here.client() as client:
        found = client.get("/healthz", headers={b"X-Request-Id": given.encode("latin-1")}).headers["x-request-id"]
        other = client.get("/healthz").headers["x-request-id"]
    assert re.fullmatch(r"[0-9a-f]{20}", found)
    assert found != other


def test_lines_hold_no_secret_and_no_query(here: Serving, lines: io.StringIO) -> None:
    with here.client() as client:
        client.post("/v1/campaigns/spring/decisions?token=hidden", json={"context": "young", "key": "person-7"})
        client.get("/healthz")
    told = [line for line in _told(lines) if line["event"] == "request"]
    assert [line["route"] for line in told] == ["/v1/campaigns/{name}/decisions"]
    assert told[0]["campaign"] == "spring"
    for secret in (here.key, "hidden", "person-7"):
        assert secret not in lines.getvalue()
    assert str(told[0]["key_id"]) in here.key  # the part that is no secret


def test_a_campaign_of_any_name_stays_on_its_line(here: Serving, lines: io.StringIO) -> None:
    with here.client() as client:
        client.get("/v1/campaigns/" + "x%22%2C%20%22level%22" + "/alarms")
    logging.getLogger("doral.live").error("two\nlines")
    told = _told(lines)
    assert told[0]["campaign"] == 'x", "level"'
    assert told[0]["level"] == "info"
    assert told[-1]["message"] == "two\nlines"


def test_at_a_terminal_lines_are_words() -> None:
    record = logging.LogRecord("doral.service.requests", logging.INFO, "", 0, "", (), None)
    record.request = {
        "request_id": "r1", "method": "GET", "route": "/x", "status": 200, "ms": 12.3, "bytes": 5, "key_id": "k1",
        "campaign": "evil\x1b[2J",
    }  # fmt: skip
    assert logs.TextFormatter().format(record).endswith("GET /x 200 12.3 ms evil\\x1b[2J key k1 [r1]")


def test_lines_that_cannot_be_written_end_nothing(here: Serving, lines: io.StringIO) -> None:
    lines.close()
    with here.client() as client:
        assert client.get("/v1/me").status_code == 200


def test_numbers_are_counted_and_looked_up(here: Serving) -> None:
    here.store.create(_NAME, PROBLEM)
    with here.client() as client:
        several = [client.post("/v1/campaigns/spring/decisions", json={"context": "old"}).json() for _ in range(20)]
        made = next(one for one in several if one["state"] == "pending")
        client.post("/v1/campaigns/spring/feedback", json={"decision_id": made["id"], "reward": 1.0})
        client.post("/v1/campaigns/spring/feedback", json={"decision_id": "no", "reward": 1.0})
        text = client.get("/metrics").text
    assert 'doral_answers_total{campaign="spring",state="returned"} 1.0' in text
    assert 'doral_errors_total{code="unknown-decision"} 1.0' in text
    assert 'doral_responses_total{method="POST",route="/v1/campaigns/{name}/feedback",status="200"} 1.0' in text
    assert 'doral_budget_total{campaign="spring"} 1000.0' in text
    assert 'doral_budget_total{campaign="a \\"quoted\\" name\\\\"} 1000.0' in text
    assert 'doral_alarms{rule="arm-silent"} 0.0' in text
    assert "doral_build_info{" in text
    assert "process_resident_memory_bytes " in text
    ledger = here.store.campaign("spring").ledger()
    assert f'doral_budget_spent{{campaign="spring"}} {float(ledger.spent)}' in text


def test_numbers_are_for_those_who_may_read_all(here: Serving) -> None:
    with here.client(here.make_key("decide")) as client:
        assert client.get("/metrics").status_code == 403
    with here.client(here.make_key("read", campaigns=["spring"])) as client:
        assert client.get("/metrics").status_code == 403
    assert httpx2.get(here.url + "/metrics").status_code == 401


def test_names_from_outside_do_not_fill_the_memory() -> None:
    metrics = Metrics()
    for place in range(MOST_CAMPAIGNS + 50):
        metrics.answered(f"c{place}", [SimpleNamespace(state="returned")])  # type: ignore[list-item]
        metrics.refused(f"code-{place}")
    with open_store("memory://") as store:
        text = scrape(store, metrics).decode()
    assert text.count("doral_answers_total{") == MOST_CAMPAIGNS + 1
    assert 'doral_answers_total{campaign="other",state="returned"} 50.0' in text
    assert text.count("doral_errors_total{") == 101


class Timed:
    """A store of campaigns that all move, each of which takes a tenth of a second to be read."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, n_campaigns: int) -> None:
        self.now, self.heads = 0.0, dict.fromkeys(sorted(f"c{number}" for number in range(n_campaigns)), 1)
        self.read: list[str] = []
        self.broken: set[str] = set()
        monkeypatch.setattr(scraped, "time", SimpleNamespace(monotonic=lambda: self.now))
        monkeypatch.setattr(scraped, "briefly", self._briefly)

    def _heads(self) -> dict[str, int]:
        return dict(reversed(self.heads.items()))  # in whatever order

    @contextmanager
    def _briefly(self, store: Any, name: str, *, of: int) -> Iterator[Any]:
        def read(ask: Any) -> tuple[int, Standing]:
            self.read.append(name)
            self.now += 0.1
            if name in self.broken:
                raise doral.DoralError("broken")
            return self.heads[name], Standing(1.0, 0.0, 0.0, 1.0, 0)

        yield SimpleNamespace(session=SimpleNamespace(read=read))

    def last_seen(self, name: str) -> None:
        """Nobody else has used it here."""

    def move(self) -> None:
        self.heads = {name: last + 1 for name, last in self.heads.items()}


def test_where_there_is_no_time_for_all_every_campaign_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    store, standings = Timed(monkeypatch, 100), scraped._Standings()
    monkeypatch.setattr(scraped, "_WITHIN_S", 1.95)
    for look in range(5):  # twenty in each
        store.move()
        assert len(standings.look(store)) == 20 * (look + 1)  # type: ignore[arg-type]
    assert sorted(store.read) == list(store.heads)
    for _ in range(3):
        store.move()
        assert list(standings.look(store)) == list(store.heads)  # type: ignore[arg-type]
    for _ in range(5):
        standings.look(store)  # type: ignore[arg-type]
    before = len(store.read)
    standings.look(store)  # type: ignore[arg-type]
    assert len(store.read) == before  # nothing has moved


def test_what_has_no_number_of_its_own_is_told_when_all_of_it_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    store, standings = Timed(monkeypatch, 30), scraped._Standings()
    monkeypatch.setattr(scraped, "_WITHIN_S", 0.95)
    monkeypatch.setattr(scraped, "MOST_CAMPAIGNS", 5)
    store.broken = {"c9"}  # which must not hold the others up for ever
    own = list(store.heads)[:5]
    found = [standings.look(store) for _ in range(4)]  # type: ignore[arg-type]
    assert [list(one) for one in found] == [own, own, [*own, "other"], [*own, "other"]]
    assert found[-1]["other"].total == 24.0


def test_every_reason_to_skip_has_a_word() -> None:
    metrics = Metrics()
    with open_store("memory://") as store:
        made = store.create("x", PROBLEM).decide("young", available=[])
    metrics.decided("x", [made])
    assert 'doral_skips_total{campaign="x",reason="unavailable"} 1.0' in generate_latest(metrics.registry).decode()
