"""However the network fails, a request that is sent again is carried out once, and the budget is exact."""

from __future__ import annotations

import asyncio
import pickle
import random
import re
import shutil
import socket
import ssl
import subprocess
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal
from pathlib import Path

import pytest

import doral
from doral.client.attempts import Attempts, Failure, Patience, Reply
from doral.client.calls import Call
from doral.live.errors import BrokenLog, OutcomeUnknown, StorageBusy
from doral.wire.problems import NotAllowed, RequestLost, ServiceError, ServiceUnreachable, TooManyRequests, to_problem
from tests.live.test_forks import in_child
from tests.service.faulty import CUT_AFTER, CUT_BEFORE, GARBAGE, HANG, OF_THE_NETWORK, PASS, Proxy, answering, proxy
from tests.service.harness import PROBLEM, Serving, serving

BUSY = answering(503, "Retry-After: 0.05", "Content-Type: application/problem+json")
TOO_MANY = answering(429, "Retry-After: 0.05")
BAD_GATEWAY = answering(502, body="<html>upstream</html>")


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    with serving() as found:
        yield found


@pytest.fixture
def between(served: Serving) -> Iterator[Proxy]:
    with proxy(served.url) as found:
        yield found


def test_whatever_happens_on_the_way_everything_happens_once(served: Serving, between: Proxy) -> None:
    chance = random.Random(5)
    faults: list[str | bytes | int] = [*OF_THE_NETWORK, BUSY, TOO_MANY, BAD_GATEWAY, PASS, PASS]
    twin = doral.open("memory://").create("twin", PROBLEM, seed=9, clock="rounds")
    served.store.create("faults", PROBLEM, seed=9, clock="rounds")
    with doral.connect(between.url, key=served.key, timeout_s=20, try_timeout_s=5) as store:
        campaign = store.campaign("faults")
        for i in range(30):
            between.faults = [chance.choice(faults) for _ in range(chance.randrange(4))]
            context = chance.choice(["young", "old"])
            made, wanted = campaign.decide(context), twin.decide(context)
            assert (made.arm, made.round, made.reason) == (wanted.arm, wanted.round, wanted.reason)
            between.faults = [chance.choice(faults) for _ in range(chance.randrange(3))]
            if made.state == "pending" and i % 2:
                campaign.feedback(made.id, 1.0, actual_cost=0.5)
                twin.feedback(wanted.id, 1.0, actual_cost=0.5)
        between.faults = [CUT_AFTER, CUT_AFTER]
        campaign.top_up(0.1)
        twin.top_up(0.1)
        between.faults = [CUT_AFTER, GARBAGE]
        assert len(campaign.decide_many(["old"] * 5)) == len(twin.decide_many(["old"] * 5))
        between.faults = [CUT_AFTER]
        campaign.extend(10)
        twin.extend(10)
        assert campaign.ledger() == twin.ledger()
        assert campaign.ledger().total == Decimal("1000.1")
        assert campaign.report().arrivals == twin.report().arrivals == 35
        assert campaign.problem.horizon == twin.problem.horizon
        between.faults = [CUT_AFTER]
        assert store.create("again", PROBLEM).name == "again"


def test_each_try_carries_the_same_key(served: Serving, between: Proxy) -> None:
    served.store.create("keys", PROBLEM, clock="rounds")
    with doral.connect(between.url, key=served.key, timeout_s=20) as store:
        campaign = store.campaign("keys")
        between.seen.clear()
        between.faults = [CUT_BEFORE, BUSY, CUT_AFTER]
        made = campaign.decide("old")
        assert len(between.seen) == 4
        assert {re.search(rb'"key":"(\w+)"', one)[1] for one in between.seen} == {(made.key or "").encode()}  # type: ignore[index]
        between.seen.clear()
        campaign.decide("old")
        assert (made.key or "").encode() not in between.seen[0]
        assert b"user-agent: doral/" in between.seen[0].lower()


def test_when_patience_ends_the_key_says_how_to_ask_again(served: Serving, between: Proxy) -> None:
    served.store.create("lost", PROBLEM, clock="rounds")
    hasty = doral.connect(between.url, key=served.key, timeout_s=0.3, try_timeout_s=0.1)
    impatient = hasty._made("lost")
    with hasty, doral.connect(between.url, key=served.key, timeout_s=30) as store:
        campaign = store.campaign("lost")
        between.faults = [CUT_AFTER] * 50
        with pytest.raises(OutcomeUnknown, match="ask again with the same key") as lost:
            impatient.decide("old")
        between.faults.clear()
        assert isinstance(lost.value, RequestLost)
        assert lost.value.key is not None
        again = campaign.decide("old", key=lost.value.key)
        assert again.round == 1
        assert len(list(campaign.decisions())) == 1
        between.faults = [HANG] * 50
        with pytest.raises(RequestLost) as lost:
            impatient.feedback(again.id, 1.0, key="mine")
        assert lost.value.key == "mine"
        between.hanging.set()
        between.faults = [CUT_AFTER] * 50
        with pytest.raises(RequestLost) as lost:
            impatient.decide_many(["old", "young"])
        between.faults.clear()
        items = [{"context": one, "key": f"{lost.value.key}/{i}"} for i, one in enumerate(["old", "young"])]
        assert [one.round for one in campaign.decide_many(items)] == [2, 3]
        # What was never sent cannot have happened, and looking changes nothing.
        between.faults = [CUT_BEFORE] * 50
        with pytest.raises(ServiceUnreachable) as unreachable:
            impatient.ledger()
        assert not isinstance(unreachable.value, OutcomeUnknown)


def test_nobody_there() -> None:
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        with doral.connect(url, key="secret", timeout_s=0.3) as store, pytest.raises(ServiceUnreachable) as error:
            store.create("c", PROBLEM)
        assert not isinstance(error.value, OutcomeUnknown)
        assert "gave no answer" in str(error.value)


def test_where_no_connection_was_ever_made_it_is_given_up_soon_and_later_it_is_not(
    served: Serving, caplog: pytest.LogCaptureFixture
) -> None:
    unconnected = Failure(words="refused", may_have_arrived=False, is_unconnected=True)
    call: Call[None] = Call(method="GET", path="/v1/campaigns/kits/decisions?key=visit-17", read=lambda _: None)
    patience = Patience(timeout_s=60.0, try_timeout_s=20.0)

    def tries(*, is_first: bool) -> int:
        attempts, now_s, found = Attempts(call, patience, random.Random(1), 0.0, is_first=is_first), 0.0, 1
        while (wait_s := attempts.wait_s(unconnected, now_s)) is not None:
            found, now_s = found + 1, now_s + wait_s
        with pytest.raises(ServiceUnreachable):
            attempts.result()
        return found

    with caplog.at_level("WARNING", logger="doral.client"):
        assert tries(is_first=True) == 3
    assert len(caplog.records) == 2
    assert "visit-17" not in caplog.text
    assert tries(is_first=False) > 10
    attempts = Attempts(call, patience, random.Random(1), 0.0, is_first=True)
    for _ in range(10):  # something is there, and answers
        assert attempts.wait_s(Failure(words="cut", may_have_arrived=True), 0.0) is not None
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{reserved.getsockname()[1]}"
        with doral.connect(url, key=served.key) as store, pytest.raises(ServiceUnreachable, match="3 tries"):
            store.list()


def test_a_head_that_drips_is_waited_for_no_longer_than_was_said() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        is_over = threading.Event()

        def drip() -> None:
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                connection.sendall(b"HTTP/1.1 200 OK\r\n")
                while not is_over.wait(0.05):
                    connection.sendall(b"X-More: 1\r\n")

        dripping = threading.Thread(target=drip)
        dripping.start()
        url = f"http://127.0.0.1:{listening.getsockname()[1]}"
        with doral.connect(url, timeout_s=0.5) as store, pytest.raises(ServiceUnreachable, match="within 0.5 s"):
            store.list()
        is_over.set()
        dripping.join()


def test_every_change_that_is_sent_again_counts_once(served: Serving, between: Proxy) -> None:
    local = served.store.create("changes", PROBLEM, seed=3, clock="rounds")
    with doral.connect(between.url, key=served.key, timeout_s=20) as store:
        campaign = store.campaign("changes")
        decision = campaign.decide("old", key="visit-17")
        for change in (
            lambda: campaign.add_arm(doral.Arm("visit", cost=5.0)),
            lambda: campaign.pause_arm("visit"),
            lambda: campaign.resume_arm("visit"),
            lambda: campaign.retire_arm("visit"),
            lambda: campaign.top_up(7.0),
            lambda: campaign.extend(rounds=5),
            lambda: campaign.cancel(decision.id),
            lambda: campaign.record("young", "letter", at=1),
            lambda: campaign.expire(),
            lambda: campaign.forget("visit-17"),
            lambda: campaign.close(),
        ):
            before = local.verify().events
            between.faults = [CUT_AFTER, CUT_AFTER]
            change()
            assert local.verify().events - before <= 1
        acts = [one.act for one in served.store.books.acts() if one.campaign == "changes"]
        assert len(acts) == len(set(acts)), "each is noted once"
        assert local.ledger().total == Decimal("1007.0")


def test_what_cannot_be_mended_is_said_at_once(served: Serving, between: Proxy) -> None:
    with doral.connect(between.url, key=served.key, timeout_s=20) as store:
        for answer, error in (
            (answering(307, "Location: http://elsewhere.example.org/"), ServiceError),
            (answering(401), NotAllowed),
            (answering(403), NotAllowed),
            (answering(500), ServiceError),
            (answering(200, body='{"something": "else"}'), ServiceError),
            (answering(503, body='{"type": "urn:doral:problem:broken-log", "detail": "damaged"}'), BrokenLog),
        ):
            between.seen.clear()
            between.faults = [answer]
            with pytest.raises(error):
                store.campaign("any")
            assert len(between.seen) == 1
    with doral.connect(served.url, key="doral_000000000000_" + "x" * 43) as store, pytest.raises(NotAllowed):
        store.list()


def test_a_service_that_says_when_to_come_again_is_heard(served: Serving, between: Proxy) -> None:
    with doral.connect(between.url, key=served.key, timeout_s=20) as store:
        between.faults = [answering(429, "Retry-After: 0.2")]
        began = time.monotonic()
        store.list()
        assert time.monotonic() - began >= 0.2
        between.faults = [answering(429, "Retry-After: 60", body='{"type": "x", "detail": "slowly"}')]
        began = time.monotonic()
        with pytest.raises(TooManyRequests, match="slowly"):
            store.list()
        assert time.monotonic() - began < 15  # nobody waits for what comes too late


def test_the_key_is_shown_nowhere(served: Serving, between: Proxy, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("DEBUG")
    store = doral.connect(between.url, key=served.key, timeout_s=0.2)
    awaited = doral.connect_async(served.url, served.key)
    shown = [repr(one) for one in (store, awaited, vars(store), vars(awaited), vars(store._connection))]
    for fault in (answering(307, "Location: http://127.0.0.1:9/"), CUT_AFTER, answering(500), GARBAGE):
        between.faults = [fault] * 40
        with pytest.raises(ServiceError) as error:
            store.create("secret", PROBLEM)
        shown += traceback.format_exception(error.value)
    store.close()
    assert served.key not in "".join(shown) + caplog.text
    for wrong in ("a b", "ü", "a\nb", "", 3):
        with pytest.raises(doral.InvalidValue) as refused:
            doral.connect(served.url, key=wrong)  # type: ignore[arg-type]
        assert "(not shown)" in str(refused.value)


@pytest.mark.parametrize(
    "url", ["", "doral.example.org", "ftp://x", "http://", "https://user:secret@x", "https://x?key=1", 3, "http://x:y"]
)
def test_an_address_that_is_none(url: str) -> None:
    with pytest.raises(doral.InvalidValue) as error:
        doral.connect(url)
    assert "secret" not in str(error.value)


def test_a_key_goes_over_plain_http_only_where_that_is_said() -> None:
    for url in ("http://doral.example.org", "http://10.0.0.1:8000"):
        with pytest.raises(doral.InvalidValue, match="allow_plain_http"):
            doral.connect(url, key="k")
        doral.connect(url, key="k", allow_plain_http=True).close()
        doral.connect(url).close()
    for url in ("http://localhost:1", "http://127.0.0.9", "http://[::1]:8000", "https://doral.example.org"):
        doral.connect(url, key="k").close()
    for wrong in ({"timeout_s": 0}, {"try_timeout_s": -1}, {"allow_plain_http": 1}, {"tls": "yes"}):
        with pytest.raises(doral.InvalidValue):
            doral.connect("http://localhost", **wrong)


def test_a_service_that_is_stopped_and_started_again(tmp_path: object) -> None:
    storage = f"sqlite:///{tmp_path}/store.db"
    results: list[int] = []
    with proxy("http://127.0.0.1:1") as between:
        with serving(storage) as served:
            between.target = served.url
            key = served.make_key("admin")
            served.store.create("restarted", PROBLEM, clock="rounds")

            def work() -> None:
                with doral.connect(between.url, key=key, timeout_s=20) as store:
                    campaign = store.campaign("restarted")
                    results.extend(campaign.decide("old").round for _ in range(60))

            thread = threading.Thread(target=work)
            thread.start()
            while len(results) < 10 and thread.is_alive():
                time.sleep(0.001)
        with serving(storage) as served:
            between.target = served.url
            thread.join(timeout=30)
            assert results == list(range(1, 61))
            assert served.store.campaign("restarted").report().arrivals == 60


def test_threads_share_a_connection_and_children_make_their_own(served: Serving) -> None:
    served.store.create("shared", PROBLEM, clock="rounds")
    with doral.connect(served.url, key=served.key, timeout_s=20) as store:
        campaign = store.campaign("shared")
        threads = [threading.Thread(target=lambda: [campaign.decide("old") for _ in range(5)]) for _ in range(8)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
        assert campaign.report().arrivals == 40
        assert in_child(lambda: str(campaign.decide("old", key="of a child").round)) == "41"
        assert campaign.decide("young").round == 42
        assert campaign.decide("old", key="of a child").round == 41
        assert campaign.report().arrivals == 42
    campaign.decide("old")  # a store that was closed is opened by whoever asks
    store.close()


def test_awaited_calls_recover_too(served: Serving, between: Proxy) -> None:
    served.store.create("awaited", PROBLEM, clock="rounds")

    async def work() -> int:
        async with doral.connect_async(between.url, key=served.key, timeout_s=30, try_timeout_s=1) as store:
            campaign = await store.campaign("awaited")
            between.faults = [*OF_THE_NETWORK, HANG, BUSY, TOO_MANY]
            made = await asyncio.gather(*(campaign.decide("old") for _ in range(10)))
            assert sorted(one.round for one in made) == list(range(1, 11))
            between.faults = [CUT_AFTER] * 99
            with pytest.raises(RequestLost):
                async with doral.connect_async(between.url, key=served.key, timeout_s=0.5) as hasty:
                    await hasty.create("hasty", PROBLEM)
            between.faults.clear()
            return len([one async for one in campaign.decisions()])

    assert asyncio.run(work()) == 10


def test_waits_grow_and_are_spread_by_chance() -> None:
    call = Call(method="GET", path="/", read=str)
    lost = Failure(words="lost", may_have_arrived=True)
    attempts = Attempts(call, Patience(timeout_s=1e6, try_timeout_s=20), random.Random(1), 0.0)
    waits = [attempts.wait_s(lost, 0.0) or 0.0 for _ in range(12)]
    assert all(0.5 * full <= one <= full for one, full in zip(waits, [0.05 * 2**n for n in range(7)], strict=False))
    assert all(2.5 <= one <= 5.0 for one in waits[7:])
    assert attempts.try_timeout_s(0.0) == 20
    busy = Reply(status=503, headers={}, body=str(to_problem(StorageBusy("x"))).replace("'", '"').encode())
    assert attempts.wait_s(busy, 1e6) is None
    with pytest.raises(StorageBusy):
        attempts.result()


def test_errors_survive_pickling() -> None:
    lost = pickle.loads(pickle.dumps(RequestLost("words", "k")))
    assert (str(lost), lost.key, lost.code) == ("words", "k", "request-lost")
    refused = pickle.loads(pickle.dumps(TooManyRequests("words", "too-many", 429, 3.0)))
    assert (str(refused), refused.retry_after_s) == ("words", 3.0)


def test_batches_have_an_end(served: Serving) -> None:
    served.store.create("batches", PROBLEM, clock="rounds")
    with doral.connect(served.url, key=served.key) as store:
        campaign = store.campaign("batches")
        with pytest.raises(doral.InvalidValue, match="at most 10,000"):
            campaign.decide_many(["old"] * 10_001)
        assert campaign.report().arrivals == 0


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl here")
def test_a_certificate_that_nobody_vouches_for_is_refused_at_once(tmp_path: Path) -> None:
    command = "openssl req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -keyout key.pem -out cert.pem"
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    subprocess.run([*command.split(), *names], check=True, capture_output=True, cwd=tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"

        def answer() -> None:
            for _ in range(2):
                connection, _ = listening.accept()
                with connection, suppress(OSError), context.wrap_socket(connection, server_side=True) as secured:
                    secured.recv(65536)
                    body = '{"campaigns": [{"name": "c"}], "next": null}'
                    secured.sendall(answering(200, "Content-Type: application/json", body=body))

        thread = threading.Thread(target=answer)
        thread.start()
        with doral.connect(url, key="k", timeout_s=30) as store, pytest.raises(doral.InvalidValue, match="not trusted"):
            store.list()
        trusted = ssl.create_default_context(cafile=str(tmp_path / "cert.pem"))
        with doral.connect(url, key="k", timeout_s=30, tls=trusted) as store:
            assert store.list() == ["c"]
        thread.join(timeout=10)


def test_what_does_not_speak_tls_is_said_at_once() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        url = f"https://127.0.0.1:{listening.getsockname()[1]}"

        def answer() -> None:
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                connection.recv(65536)
                connection.sendall(answering(400))

        thread = threading.Thread(target=answer)
        thread.start()
        with (
            doral.connect(url, key="k", timeout_s=30) as store,
            pytest.raises(doral.InvalidValue, match="does not speak TLS: begin with http://"),
        ):
            store.list()
        thread.join(timeout=10)
