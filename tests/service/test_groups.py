"""The write queue: what comes together is stored together, in its order, and no request breaks the others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import pytest

import doral
from doral.errors import DoralError, UnknownName
from doral.live.campaign import Campaign
from doral.live.errors import StorageError, UnknownDecision
from doral.live.views.decision import Decision
from doral.service.operations.metrics import Metrics
from doral.service.write_queue import WriteQueue
from doral.wire.problems import ServiceError
from tests.service.harness import PROBLEM

Result = TypeVar("Result")


class Counted(Metrics):
    """Keeps what it is told."""

    def __init__(self) -> None:
        super().__init__()
        self.groups: list[int] = []
        self.told: list[int] = []  # for whoever follows: after how many groups
        self.made: list[Decision] = []
        self.answers: list[Decision] = []

    def decided(self, campaign: str, decisions: Sequence[Decision]) -> None:
        self.made += decisions

    def answered(self, campaign: str, decisions: Sequence[Decision]) -> None:
        self.answers += decisions

    def grouped(self, campaign: str, size: int, *, waited_s: float, stored_s: float) -> None:
        assert waited_s >= 0.0
        assert stored_s >= 0.0
        self.groups.append(size)


@pytest.fixture
def campaign() -> Iterator[Campaign]:
    with doral.open("memory://") as store:
        yield store.create("spring", PROBLEM, seed=7)


def at_queue(
    campaign: Campaign, visit: Callable[[WriteQueue], Awaitable[Result]], *, queue: int = 10_000
) -> tuple[Result, Counted]:
    metrics = Counted()

    async def main() -> Result:
        loop = asyncio.get_running_loop()

        async def run(work: Callable[[], Any]) -> Any:
            return await loop.run_in_executor(threads, work)

        writes = WriteQueue(
            campaign, run, metrics, queue=queue, when_stored=lambda: metrics.told.append(len(metrics.groups))
        )
        found = await visit(writes)
        await writes.drain()
        return found

    with ThreadPoolExecutor(4) as threads:
        return asyncio.run(main()), metrics


def test_requests_that_come_together_are_stored_together_in_their_order(campaign: Campaign) -> None:
    async def visit(queue: WriteQueue) -> list[Any]:
        asked = [queue.decide({"context": "young", "key": f"k{i}"}) for i in range(50)]
        wrong = queue.decide({"context": "nobody"})
        repeated = queue.decide({"context": "young", "key": "k0"})
        many = queue.decide_many([{"context": "old"}, {"context": "young"}])
        return await asyncio.gather(*asked, wrong, repeated, many, return_exceptions=True)

    found, metrics = at_queue(campaign, visit)
    *singles, wrong, repeated, many = found
    assert [one.round for one in singles] == list(range(1, 51))
    assert isinstance(wrong, UnknownName)
    assert repeated == singles[0]
    assert [one.round for one in many] == [51, 52]
    assert sum(metrics.groups) == 53
    assert len(metrics.groups) <= 2
    assert metrics.told == list(range(len(metrics.groups)))
    assert len(metrics.made) == 52  # the one that was told again is stored once
    assert list(campaign.decisions()) == [*singles, *many]


def test_all_kinds_keep_their_order(campaign: Campaign) -> None:
    made = [one for one in campaign.decide_many(["young"] * 30) if one.state == "pending"][:4]

    async def visit(queue: WriteQueue) -> list[Any]:
        return await asyncio.gather(
            queue.feedback({"decision_id": made[0].id, "reward": 1.0}),
            queue.correct({"decision_id": made[0].id, "reward": 0.5}),
            queue.cancel(made[1].id, None, None),
            queue.feedback({"decision_id": made[1].id, "reward": 1.0}),
            queue.write(lambda one: one.top_up(10.0)),
            queue.feedback_each([{"decision_id": made[2].id, "reward": 1.0}, {"decision_id": "x", "reward": 1.0}]),
            queue.feedback_many([{"decision_id": made[3].id, "reward": 1.0}, {"decision_id": "x", "reward": 1.0}]),
            queue.write(lambda one: one.close()),
            queue.decide({"context": "young"}),
            queue.feedback({"decision_id": made[3].id, "reward": 0.0}),
            return_exceptions=True,
        )

    found, metrics = at_queue(campaign, visit)
    answered, corrected, cancelled, refused, nothing, each, none, _, closed, last = found
    assert (answered.reward, corrected.reward) == (1.0, 0.5)
    assert cancelled.state == "cancelled"
    assert isinstance(refused, DoralError)
    assert nothing is None
    assert isinstance(each[0], Decision)
    assert isinstance(each[1], UnknownDecision)
    assert isinstance(none, UnknownDecision)
    assert isinstance(closed, DoralError)
    assert last.reward == 0.0
    assert len(metrics.answers) == 3
    assert campaign.ledger().total == 1_010


def test_what_is_told_again_is_not_counted_again(campaign: Campaign) -> None:
    async def visit(queue: WriteQueue) -> None:
        same = {"context": "young", "key": "same"}
        await asyncio.gather(*(queue.decide(same) for _ in range(5)))
        await queue.decide(same)
        await queue.decide_many([same, {"context": "old", "key": "other"}])

    _, metrics = at_queue(campaign, visit)
    assert [one.key for one in metrics.made] == ["same", "other"]


@pytest.mark.parametrize("has_looked", [False, True])
def test_what_another_process_has_made_is_only_told_again(tmp_path: Path, has_looked: bool) -> None:
    """As after a worker's death: whether or not this one has ever seen the campaign, or has seen it long ago."""
    url = f"sqlite:///{tmp_path}/campaigns.db"
    with doral.open(url) as other, doral.open(url) as own:
        theirs = other.create("spring", PROBLEM, seed=7)
        if has_looked:
            own.campaign("spring").report()
        arrivals = [{"context": "old", "key": f"k{number}"} for number in range(5)]
        made = theirs.decide_many(arrivals)

        async def visit(queue: WriteQueue) -> list[Decision]:
            told, batch, again = await asyncio.gather(
                queue.decide({"context": "old"}),
                queue.decide_many([*arrivals, {"context": "young"}]),
                queue.decide(arrivals[0]),
            )
            assert [*batch[:5], again] == [*made, made[0]]
            return [told, batch[5]]

        new, metrics = at_queue(own.campaign("spring"), visit)
        assert [one.id for one in metrics.made] == [one.id for one in new]


def test_a_request_that_is_refused_commits_nothing(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/campaigns.db"
    with doral.open(url) as store:
        campaign = store.create("spring", PROBLEM, seed=7)

        async def visit(queue: WriteQueue) -> list[Any]:
            return list(await asyncio.gather(queue.decide({"context": "nobody"}), return_exceptions=True))

        log_class = type(campaign.session.read(lambda log, _: log))
        commit, commits = log_class.commit, []

        def noted(log: Any) -> None:
            commits.append(log)
            commit(log)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(log_class, "commit", noted)
            found, metrics = at_queue(campaign, visit)
        assert all(isinstance(one, DoralError) for one in found)
        assert (commits, metrics.made) == ([], [])


def test_empty_batches_store_nothing(campaign: Campaign) -> None:
    async def visit(queue: WriteQueue) -> list[Any]:
        return [
            *await queue.decide_many([]),
            *await queue.feedback_each([]),
            *await queue.feedback_many([]),
            *await queue.record_many([]),
        ]

    found, metrics = at_queue(campaign, visit)
    assert found == []
    assert metrics.groups == []


def test_others_gather_while_one_group_is_stored(campaign: Campaign) -> None:
    """And whoever only looks waits for no queue."""
    is_busy, go_on = threading.Event(), threading.Event()

    def slowly(one: Campaign) -> str:
        is_busy.set()
        assert go_on.wait(10)
        return one.name

    async def visit(queue: WriteQueue) -> list[Any]:
        slow = asyncio.ensure_future(queue.write(slowly))
        await asyncio.get_running_loop().run_in_executor(None, is_busy.wait)
        others = [asyncio.ensure_future(queue.decide({"context": "old"})) for _ in range(20)]
        await asyncio.sleep(0)
        assert await queue.read(lambda one: one.report().arrivals) == 0
        gone = others.pop(3)
        gone.cancel()
        go_on.set()
        return await asyncio.gather(slow, *others)

    found, metrics = at_queue(campaign, visit)
    assert found[0] == "spring"
    assert metrics.groups == [1, 19]  # nothing was done for whoever had gone away
    assert campaign.report().arrivals == 19


def test_whoever_goes_away_while_it_is_stored_breaks_nothing(campaign: Campaign) -> None:
    go_on = threading.Event()

    async def visit(queue: WriteQueue) -> list[Any]:
        asked = [asyncio.ensure_future(queue.decide({"context": "old"})) for _ in range(5)]
        slow = asyncio.ensure_future(queue.write(lambda _: go_on.wait(10)))
        while not asked[0].done() and campaign.report().arrivals < 5:
            await asyncio.sleep(0.001)
        asked[2].cancel()
        go_on.set()
        return await asyncio.gather(slow, *asked, return_exceptions=True)

    found, _ = at_queue(campaign, visit)
    assert isinstance(found[3], asyncio.CancelledError)
    assert sum(isinstance(one, Decision) for one in found) == 4
    assert campaign.report().arrivals == 5  # what was stored stays stored


def test_a_full_queue_is_said_so(campaign: Campaign) -> None:
    async def visit(queue: WriteQueue) -> list[Any]:
        asked = [queue.decide({"context": "old"}) for _ in range(8)]
        return await asyncio.gather(*asked, return_exceptions=True)

    found, _ = at_queue(campaign, visit, queue=5)
    refused = [one for one in found if isinstance(one, ServiceError)]
    assert len(refused) == 3
    assert {(one.code, one.status, one.retry_after_s) for one in refused} == {("overloaded", 503, 1.0)}
    assert campaign.report().arrivals == 5


def test_a_store_that_fails_fails_the_group_and_the_next_one_goes_on(campaign: Campaign) -> None:
    log: Any = campaign.session.read(lambda log, _: log)

    def fail() -> None:
        del log.commit
        raise doral.live.errors.StorageBusy("others have kept it locked")

    async def visit(queue: WriteQueue) -> list[Any]:
        log.commit = fail
        failed = await asyncio.gather(*(queue.decide({"context": "old"}) for _ in range(4)), return_exceptions=True)
        return [*failed, await queue.decide({"context": "old"})]

    found, metrics = at_queue(campaign, visit)
    assert [isinstance(one, StorageError) for one in found] == [True] * 4 + [False]
    assert found[-1].round == 1
    assert metrics.groups == [4, 1]
    assert len(metrics.made) == 1


def test_what_goes_wrong_with_counts_or_followers_is_not_told_to_those_who_wait(
    campaign: Campaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(Counted, "decided", fail)

    async def visit(queue: WriteQueue) -> list[Any]:
        first = await asyncio.gather(*(queue.decide({"context": "old"}) for _ in range(4)), return_exceptions=True)
        return [*first, await queue.decide({"context": "old"})]

    found, _ = at_queue(campaign, visit)
    assert [one.round for one in found] == [1, 2, 3, 4, 5]


def test_a_bug_in_a_change_is_told_to_whoever_asked_for_it(campaign: Campaign) -> None:
    async def visit(queue: WriteQueue) -> list[Any]:
        asked: list[Awaitable[Any]] = [queue.decide({"context": "old"}), queue.write(lambda _: 1 / 0)]
        return await asyncio.gather(*asked, queue.decide({"context": "old"}), return_exceptions=True)

    found, _ = at_queue(campaign, visit)
    assert isinstance(found[1], ZeroDivisionError)
    assert [found[0].round, found[2].round] == [1, 2]


class Unreadable(list[Any]):
    """Items that nobody can have."""

    def __iter__(self) -> Iterator[Any]:
        raise ZeroDivisionError


def test_what_cannot_even_be_asked_for_is_told_to_whoever_asked(campaign: Campaign) -> None:
    nothing: Any = 7

    async def visit(queue: WriteQueue) -> list[Any]:
        asked: list[Awaitable[Any]] = [
            queue.write(lambda one: one.top_up(10.0)),
            queue.decide(nothing),
            queue.feedback_each(Unreadable([1])),
            queue.decide({"context": "old"}),
        ]
        return await asyncio.gather(*asked, return_exceptions=True)

    found, _ = at_queue(campaign, visit)
    assert found[0] is None
    assert isinstance(found[1], DoralError)
    assert isinstance(found[2], ZeroDivisionError)
    assert found[3].round == 1
