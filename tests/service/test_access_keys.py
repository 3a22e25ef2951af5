"""Keys in a service that runs: how soon a revoked one is of no use, how often they may be used, and what they cost."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

import doral
from doral.errors import InvalidValue, UnknownName
from doral.live.campaign import Campaign
from doral.live.storage.service_tables import KeyRow, SqlBooks
from doral.service.access.entrance import STALE_S, Failures, Rates
from doral.service.access.keys import is_administrator, make_first_key, new_key, read_key, state_of
from doral.service.settings import Limits, ServiceSettings
from tests.service.harness import PROBLEM, Serving, serving


@pytest.fixture(scope="module")
def storage(tmp_path_factory: pytest.TempPathFactory) -> str:
    return f"sqlite:///{tmp_path_factory.mktemp('access') / 'campaigns.db'}"


@pytest.fixture(scope="module")
def service(storage: str) -> Iterator[Serving]:
    with serving(storage) as one:
        yield one


def status(service: Serving, key: str) -> int:
    return httpx2.get(service.url + "/v1/acts", headers={"Authorization": f"Bearer {key}"}).status_code


def key_id(key: str) -> str:
    found = read_key(key)
    assert found is not None
    return found.id


def test_a_revoked_key_is_of_no_use_within_the_stated_time(service: Serving, storage: str) -> None:
    key = service.make_key("admin")
    assert status(service, key) == 200
    with doral.open(storage) as another_process:
        another_process.books.revoke_key(key_id(key), time.time())
    until = time.monotonic() + STALE_S
    statuses = []
    while time.monotonic() < until + 0.05:
        statuses.append(status(service, key))
        time.sleep(0.05)
    assert status(service, key) == 401
    assert statuses.index(401) * 0.05 < STALE_S
    assert set(statuses[statuses.index(401) :]) == {401}


def test_a_key_that_was_just_made_is_good_at_once_and_one_that_ends_ends(service: Serving) -> None:
    key = service.make_key("admin", expires_in_s=0.4)
    began = time.monotonic()
    assert status(service, key) == 200
    time.sleep(max(0.0, 0.41 - (time.monotonic() - began)))
    answer = httpx2.get(service.url + "/v1/acts", headers={"Authorization": f"Bearer {key}"})
    assert (answer.status_code, answer.json()["type"]) == (401, "urn:doral:problem:expired-key")


def test_revoked_and_unknown_keys_are_told_the_same(service: Serving) -> None:
    revoked = service.make_key("admin")
    service.store.books.revoke_key(key_id(revoked), time.time())
    unknown = new_key("never kept", ["admin"], now=time.time())[1]
    wrong = f"doral_{key_id(service.key)}_{'y' * 43}"
    said = [
        httpx2.get(service.url + "/v1/acts", headers={"Authorization": f"Bearer {key}"}).json()
        for key in (revoked, unknown, wrong)
    ]
    assert said[0] == said[1] == said[2]


def test_most_requests_read_no_key(service: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    read = SqlBooks.key

    def counted(books: SqlBooks, key_id: str) -> KeyRow | None:
        reads.append(key_id)
        return read(books, key_id)

    monkeypatch.setattr(SqlBooks, "key", counted)
    began = time.monotonic()
    with service.client() as client:
        for _ in range(200):
            assert client.get("/v1/acts", params={"limit": 1}).status_code == 200
    assert len(reads) <= 2 + 2 * (time.monotonic() - began) / STALE_S


def test_two_keys_at_once_are_none(service: Serving) -> None:
    twice = [("Authorization", f"Bearer {service.key}")] * 2
    assert httpx2.get(service.url + "/v1/acts", headers=twice).status_code == 401
    assert httpx2.get(service.url + f"/v1/acts?key={service.key}").status_code == 401
    lower = {"authorization": f"bearer  {service.key}"}
    assert httpx2.get(service.url + "/v1/acts", headers=lower).status_code == 200


# --- how often --------------------------------------------------------------------------------------------------------


def test_a_key_that_asks_too_often_waits_and_others_do_not() -> None:
    limits = Limits(rate_per_s=2.0, burst=3)
    with serving(settings=ServiceSettings(storage="memory://", limits=limits)) as service:
        with service.client() as client:
            answers = [client.get("/v1/acts") for _ in range(4)]
        assert [one.status_code for one in answers] == [200, 200, 200, 429]
        assert answers[-1].headers["retry-after"] == "1"
        assert answers[-1].json()["type"] == "urn:doral:problem:too-many-requests"
        assert status(service, service.make_key("admin")) == 200
        time.sleep(0.55)
        assert status(service, service.key) == 200


def test_an_address_with_too_many_wrong_keys_waits_and_valid_keys_do_not() -> None:
    limits = Limits(sign_in_failures=3)
    with serving(settings=ServiceSettings(storage="memory://", limits=limits)) as service:
        assert status(service, service.key) == 200
        wrong = [status(service, f"doral_{number:012x}_{'x' * 43}") for number in range(5)]
        assert wrong == [401, 401, 401, 429, 429]
        assert status(service, f"doral_{key_id(service.key)}_{'x' * 43}") == 429, "guesses at a key that is known"
        assert status(service, "password") == 429
        assert status(service, service.key) == 200
        assert status(service, service.make_key("admin")) == 200, "a valid key that this process has never seen"
        late = httpx2.get(service.url + "/v1/acts", headers={"Authorization": f"Bearer doral_{7:012x}_{'x' * 43}"})
        assert late.status_code == 429
        assert 1 <= int(late.headers["retry-after"]) <= 60


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_bucket_fills_steadily_and_no_further_than_it_goes() -> None:
    clock = Clock()
    rates = Rates(2.0, 3, clock)
    assert [rates.wait_s("k") for _ in range(4)] == [0, 0, 0, 0.5]
    clock.now += 0.5
    assert [rates.wait_s("k") for _ in range(2)] == [0, 0.5]
    clock.now += 1e9
    assert [rates.wait_s("k") > 0 for _ in range(4)] == [False, False, False, True]
    assert Rates(0.0, 0, clock).wait_s("k") == 0


def test_wrong_keys_are_counted_by_network_and_forgotten() -> None:
    clock = Clock()
    failures = Failures(2, clock)
    failures.add("2001:db8::1")
    failures.add("2001:db8::ffff")
    assert failures.wait_s("2001:db8::2") == 60
    assert failures.wait_s("2001:db8:0:1::2") == 0
    assert failures.wait_s("10.0.0.1") == 0
    clock.now += 60
    assert failures.wait_s("2001:db8::2") == 0
    failures.add("2001:db8::2")
    assert failures.wait_s("2001:db8::2") == 0
    for number in range(20_000):  # no more is kept of them than fits
        failures.add(f"10.0.{number // 256}.{number % 256}")
    assert len(failures._counted) <= 10_000


# --- making them ------------------------------------------------------------------------------------------------------


def test_keys_are_long_and_all_different() -> None:
    made = [new_key("k", ["read"], now=1.0)[1] for _ in range(50)]
    assert len({key[:18] for key in made}) == len({key[19:] for key in made}) == 50
    assert all(len(key) == 62 for key in made)
    row, key = new_key("k", ["read", "admin", "read"], now=1.0, campaigns=["b", "a", "b"])
    assert (row.roles, row.campaigns) == (("admin", "read"), ("b", "a"))
    presented = read_key(key)
    assert presented is not None
    assert presented.matches(row)
    assert not presented.matches(None)
    assert not presented.matches(replace(row, digest=bytes(32)))
    assert presented.secret not in repr(presented) + str(presented)


@pytest.mark.parametrize(
    "text", ["", "doral", "doral__", "doral_0123456789AB_" + "x" * 43, "doral_0123456789ab_" + "x" * 44, "d" * 10**6]
)
def test_what_is_no_key(text: str) -> None:
    assert read_key(text) is None


def test_keys_that_cannot_be_made() -> None:
    with pytest.raises(UnknownName, match="unknown role 'boss'"):
        new_key("k", ["boss"], now=1.0)
    with pytest.raises(InvalidValue, match="a key needs one of"):
        new_key("k", [], now=1.0)
    with pytest.raises(InvalidValue, match="must name one at least"):
        new_key("k", ["read"], now=1.0, campaigns=[])
    with pytest.raises(InvalidValue, match="must be in the future"):
        new_key("k", ["read"], now=1.0, expires_at=1.0)
    with pytest.raises(InvalidValue, match="must be in the future"):
        new_key("k", ["read"], now=1.0, expires_at=math.nan)
    with pytest.raises(InvalidValue, match="name of a key"):
        new_key("a\nb", ["read"], now=1.0)


def test_the_first_key_is_made_once(tmp_path: Path) -> None:
    with doral.open(f"sqlite:///{tmp_path / 'c.db'}") as store:
        key = make_first_key(store.books, 5.0)
        assert key is not None
        assert make_first_key(store.books, 6.0) is None
        [row] = store.books.all_keys()
        assert (row.roles, row.campaigns, row.expires_at) == (("admin",), None, None)
        assert state_of(row, 7.0) == "valid"
        [act] = store.books.acts()
        assert (act.act, act.key_name) == ("key created", "first start")
        assert key[19:] not in act.details


def test_who_is_an_administrator() -> None:
    row, _ = new_key("k", ["admin"], now=1.0, expires_at=9.0)
    assert is_administrator(row, 5.0)
    assert not is_administrator(row, 9.0)
    assert not is_administrator(replace(row, revoked_at=2.0), 5.0)
    assert not is_administrator(replace(row, campaigns=("kits",)), 5.0)
    assert not is_administrator(replace(row, roles=("decide", "feedback", "read")), 5.0)


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_where_keys_cannot_be_read_nobody_is_let_in(tmp_path: Path, method: str) -> None:
    with serving(f"sqlite:///{tmp_path / 'c.db'}") as service:
        key = service.make_key("admin")
        (tmp_path / "c.db").rename(tmp_path / "moved.db")
        headers = {"Authorization": f"Bearer {key}"}
        answer = httpx2.request(method, service.url + "/v1/campaigns", headers=headers)
        assert (answer.status_code, answer.json()["type"]) == (503, "urn:doral:problem:storage-failed")
        assert key[19:] not in answer.text
        (tmp_path / "moved.db").rename(tmp_path / "c.db")
        assert httpx2.request(method, service.url + "/v1/campaigns", headers=headers).status_code in (200, 422)


@pytest.mark.parametrize("what", ["verify", "report"])
def test_one_key_that_looks_at_everything_keeps_nobody_out(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many long looks are asked for with one key: others look, decide, and find the service ready."""
    go_on, busy = threading.Event(), threading.Semaphore(0)

    def look_long(_: Campaign) -> None:
        busy.release()
        go_on.wait(20)

    monkeypatch.setattr(Campaign, what, look_long)
    with serving() as one:
        for number in range(8):
            one.store.create(f"campaign-{number}", PROBLEM, seed=1)

        def look(name: str) -> None:
            with one.client() as client:
                client.get(f"/v1/campaigns/{name}/{what}")

        lookers = [threading.Thread(target=look, args=(f"campaign-{number % 8}",)) for number in range(16)]
        for looker in lookers:
            looker.start()
        assert busy.acquire(timeout=10)
        try:
            with one.client(one.make_key("decide", "read")) as client:
                assert client.get("/v1/me").status_code == 200
                assert client.get("/readyz").status_code == 200
                for number in range(8):
                    name = f"/v1/campaigns/campaign-{number}"
                    assert client.post(f"{name}/decisions", json={"context": "old"}).status_code == 200
                    assert client.get(f"{name}/ledger").status_code == 200
        finally:
            go_on.set()
            for looker in lookers:
                looker.join()
