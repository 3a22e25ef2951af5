"""Budget leases: whoever decides out of a part of the budget spends no more than that, whatever happens to him."""

from __future__ import annotations

import hashlib
import json
import math
import random
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import psycopg
import pytest

import doral
from doral.errors import DoralError, InvalidValue, UnknownName
from doral.live.apply import replay
from doral.live.campaign import Campaign
from doral.live.decision import Decision
from doral.live.errors import BrokenLog, CampaignClosed, ConnectionLost, KeyReused, OutcomeUnknown
from doral.live.events import DECIDED, LEASE_ENDED, LEASED, Event
from doral.live.fold import Fold
from doral.live.leases import session as leases_session
from doral.live.leases.session import LeasedSession
from doral.live.session import Session
from doral.live.snapshot import _DIGEST_BYTES, _LENGTH_BYTES, _MAGIC, encode
from doral.live.storage.contract import Log
from doral.live.storage.memory import MemoryStorage
from doral.live.storage.sql import SqlStorage
from doral.live.store import Store
from doral.live.together import answer, decision, store_together
from tests.live.checks import adds_up, fold_of, log_is_whole

ARMS = [
    doral.Arm("kit", features=[1.0, 0.0], cost=1.0),
    doral.Arm("visit", features=[0.0, 1.0], cost=2.5),
    doral.Arm("letter", features=[0.5, 0.5], cost=0.3),
]


def make_problem(**changes: Any) -> doral.Problem:
    given: dict[str, Any] = {"arms": ARMS, "contexts": {"old": 0.4, "young": 0.6}, "budget": 900.0, "horizon": 2000}
    return doral.Problem(**{**given, "deadline": 3600, **changes})


class Workers:
    """Several processes as one: each has a store of its own on the same data."""

    def __init__(self, storage: Callable[[], Any]) -> None:
        self._storage = storage
        self.stores: list[Store] = []

    def open(self, *, leases: bool = True) -> Store:
        self.stores.append(Store(self._storage(), leases=leases))
        return self.stores[-1]

    def campaign(self, *, leases: bool = True) -> Campaign:
        return self.open(leases=leases).campaign("hot")

    def create(self, problem: doral.Problem, *, leases: bool = True, **given: Any) -> Campaign:
        return self.open(leases=leases).create("hot", problem, seed=3, **given)


@pytest.fixture(params=["memory", "postgres"])
def workers(request: pytest.FixtureRequest) -> Iterator[Workers]:
    if request.param == "memory":
        kept = MemoryStorage()
        made = Workers(lambda: kept)
    else:
        url = str(request.getfixturevalue("postgres_url"))
        made = Workers(lambda: SqlStorage(url))
    yield made
    for store in made.stores:
        store.close()


@pytest.fixture
def here() -> Iterator[Workers]:
    kept = MemoryStorage()
    made = Workers(lambda: kept)
    yield made
    for store in made.stores:
        store.close()


@pytest.fixture(autouse=True)
def _early(monkeypatch: pytest.MonkeyPatch) -> None:
    """Campaigns of tests are young: every state would be too old."""
    monkeypatch.setattr(leases_session, "UNHEARD_SHARE", 1e9)


def leased(campaign: Campaign) -> LeasedSession:
    assert isinstance(campaign.session, LeasedSession)
    return campaign.session


def events_of(campaign: Campaign, *kinds: int) -> list[Event]:
    return campaign.session.read(lambda log, _: log.of_kinds(kinds))


def take_lease(campaign: Campaign, n: int = 4) -> None:
    """As beside others: the first group is decided the ordinary way, and brings a lease for the next one."""
    leased(campaign)._met_at = math.inf
    campaign.decide_many(["old"] * n)
    campaign.decide_many(["young"] * n)
    assert leased(campaign)._scratch is not None


def is_as_acknowledged(campaign: Campaign, acknowledged: dict[str, Decision]) -> None:
    """What the log says of decisions is what was said of them, and no more of them are there."""
    there = {one.id: one for one in adds_up(campaign)}
    assert there.keys() == acknowledged.keys()
    for id_, said in acknowledged.items():
        one = there[id_]
        assert (one.arm, one.context, one.cost, one.key) == (said.arm, said.context, said.cost, said.key)
        assert (one.reason, one.probability, one.decided_at) == (said.reason, said.probability, said.decided_at)


@pytest.mark.parametrize("worth", [2_000, 20])
def test_several_in_turns(workers: Workers, monkeypatch: pytest.MonkeyPatch, worth: int) -> None:
    """Two that lease and one that does not, down to the last of the budget."""
    monkeypatch.setattr("doral.live.leases.session._WORTH_A_SNAPSHOT", worth)
    monkeypatch.setattr("doral.live.leases.session.SNAPSHOT_BYTES_PER_EVENT", 10**9)
    first = workers.create(make_problem())
    all_ = [first, workers.campaign(), workers.campaign(leases=False)]
    for session in [campaign.session for campaign in all_]:
        session.snapshot_every = 300
        if isinstance(session, LeasedSession):
            session.merge_every_s = 0.01
    rng = random.Random(5)
    acknowledged: dict[str, Decision] = {}
    unanswered: list[str] = []
    for step in range(220):
        n = rng.randint(1, 20)
        asked = [{"context": rng.choice(["old", "young"]), "key": f"{step}-{i}"} for i in range(n)]
        worker = rng.choices(all_, weights=[4, 4, 1])[0]
        for one in worker.decide_many(asked):
            assert one.id not in acknowledged
            acknowledged[one.id] = one
            unanswered += [one.id] if one.arm is not None else []
        if step % 5 == 0:
            rng.shuffle(unanswered)
            rng.choice(all_).feedback_many([(unanswered.pop(), 1.0) for _ in range(min(4, len(unanswered)))])
        if step % 10 == 0:  # the same key gives the same decision, whoever is asked
            again = rng.choice(all_).decide_many(asked)
            assert [one.id for one in again] == [id_ for id_, one in acknowledged.items() if one.key in _keys(asked)]
        if step in (30, 90):
            rng.choice(all_).top_up(5.0)
    judge = workers.campaign(leases=False)
    is_as_acknowledged(judge, acknowledged)
    log_is_whole(judge)
    for campaign in all_:
        log_is_whole(campaign)
    assert judge.verify().n_differences == 0
    assert judge.ledger().left < 10
    by_lease = _decided_by_lease(judge)
    assert by_lease > len(acknowledged) / 2
    assert {json.loads(str(one.data))["why"] for one in events_of(judge, LEASE_ENDED)} == {"returned"}
    for store in workers.stores:
        store.close()
    assert not fold_of(workers.campaign(leases=False)).leases


def _keys(asked: list[dict[str, str]]) -> set[str]:
    return {one["key"] for one in asked}


def _decided_by_lease(campaign: Campaign) -> int:
    """Decisions of writers who had a lease when they made them."""
    holders: set[int] = set()
    found = 0
    for event in campaign.session.read(lambda log, _: log.after(0)):
        if event.kind == LEASED:
            holders.add(event.writer)
        found += event.kind == DECIDED and event.writer in holders
    return found


@pytest.mark.parametrize("clock", ["rounds", "seconds"])
@pytest.mark.parametrize("is_told", [True, False])
def test_who_is_alone_decides_as_without_leases(workers: Workers, clock: str, is_told: bool) -> None:
    """The same arms, to the end of the budget and of the horizon, whether it has leases or knows that it is alone."""
    plain = Store(MemoryStorage()).create("hot", make_problem(budget=150.0, horizon=700), seed=3, clock=clock)
    alone = workers.create(make_problem(budget=150.0, horizon=700), clock=clock)
    leased(alone)._met_at = -math.inf if is_told else math.inf
    rng = random.Random(1)
    for _ in range(75):
        asked = [rng.choice(["old", "young"]) for _ in range(rng.randint(1, 20))]
        expected, found = plain.decide_many(asked), alone.decide_many(asked)
        for one, other in zip(expected, found, strict=True):
            assert (one.arm, one.reason, one.probability) == (other.arm, other.reason, other.probability)
        answers = [rng.random() for _ in asked]
        for campaign, made in ((plain, expected), (alone, found)):
            given = [(one.id, reward) for one, reward in zip(made, answers, strict=True) if one.arm is not None]
            campaign.feedback_many(given[:3])
    assert is_told == (not events_of(alone, LEASED))
    assert is_told or _decided_by_lease(alone) > 100
    log_is_whole(alone)


def test_whoever_is_alone_again_gives_the_lease_back(here: Workers) -> None:
    holder, other = here.create(make_problem()), here.campaign()
    for _ in range(4):
        holder.decide_many(["old"] * 3)
        other.decide_many(["old"] * 3)
    assert len(fold_of(holder).leases) == 2
    leased(holder)._met_at = -math.inf
    holder.decide_many(["old"] * 3)
    assert not fold_of(holder).leases.has(holder.session.writer)
    log_is_whole(holder)


def test_an_ordinary_writer_does_not_spend_what_others_have_leased(workers: Workers) -> None:
    holder = workers.create(make_problem(budget=60.0, horizon=1_000))
    take_lease(holder)
    plain = workers.campaign(leases=False)
    own = plain.ledger().leased
    assert own > 0
    while plain.ledger().left - own >= Decimal("0.3"):
        plain.decide_many(["old"] * 5)
    assert plain.ledger().leased == own
    refused = plain.decide("old")
    assert refused.arm is None
    before = plain.ledger()
    made = holder.decide_many(["old", "young"])  # without asking anybody
    assert before.left - Decimal("5") <= plain.ledger().left
    assert plain.ledger().leased == before.leased - sum(Decimal(repr(one.cost)) for one in made)
    log_is_whole(plain)
    # What is asked of a budget that is not there is refused, and says so.
    with pytest.raises(InvalidValue, match="budget has only"):
        plain.record("old", "visit", time.time(), cost=2.5, spend=True)
    adds_up(plain)


def test_a_holder_who_wakes_up_too_late_decides_anew(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """His lease is recovered after he has decided and before he has the lock."""
    holder = workers.create(make_problem())
    take_lease(holder)
    other = workers.campaign()
    other.session.lease_ttl_s = -1.0  # everybody else was silent for too long
    leased(other)._met_at = math.inf
    session, made = leased(holder), list[Decision]()
    begin = session._open().begin_after

    def pause(*given: Any, **named: Any) -> Any:
        if not made:
            left = fold_of(other).leases.of(session.writer)
            assert left is not None
            made.extend(other.decide_many(["old"] * 3))  # takes a lease, and ends that of the silent
            ended = [json.loads(str(one.data)) for one in events_of(other, LEASE_ENDED)]
            assert ended == [{"lease": left.sequence, "left": str(left.left), "why": "recovered"}]
        return begin(*given, **named)

    monkeypatch.setattr(session._log, "begin_after", pause)
    late = holder.decide_many(["young"] * 4)
    assert len(made) == 3
    judge = workers.campaign(leases=False)
    there = {one.id: one.arm for one in adds_up(judge)}
    assert {one.id: one.arm for one in [*made, *late]}.items() <= there.items()
    assert len(there) == 8 + 3 + 4
    log_is_whole(judge)


def test_a_lease_of_the_dead_comes_back(workers: Workers) -> None:
    holder = workers.create(make_problem(budget=40.0))
    take_lease(holder)
    held = leased(holder)._scratch
    assert held is not None
    left = held.lease.left
    storage = leased(holder)._storage
    leased(holder)._close_log()  # its connections are gone, as those of a process that was killed
    if isinstance(storage, SqlStorage) and storage._pool is not None:
        storage._pool.close()
    plain = workers.campaign(leases=False)
    assert plain.ledger().leased == left
    while plain.ledger().left >= Decimal("0.3"):
        plain.decide_many(["old"] * 4)
    assert [json.loads(str(one.data))["why"] for one in events_of(plain, LEASE_ENDED)] == ["recovered"]
    # Whoever was thought to be dead goes on, without it.
    assert holder.decide("old").arm is None
    adds_up(plain)
    log_is_whole(holder)


def test_whoever_leases_looks_again_when_a_tenth_is_new(workers: Workers) -> None:
    holder, other = workers.create(make_problem()), workers.campaign(leases=False)
    take_lease(holder)
    session = leased(holder)
    session.merge_every_s, session.unheard_share = math.inf, 0.1
    holder.decide("old")
    assert session._scratch is not None
    base = session._scratch.base
    other.decide_many(["old"] * (base // 5))
    holder.decide("old")  # finds that others have written
    assert session._scratch.base == base
    holder.decide("old")
    assert session._scratch.base > base


def test_changes_meanwhile_hold_at_once(workers: Workers) -> None:
    holder = workers.create(make_problem(), at=time.time() - 100.0)
    other = workers.campaign(leases=False)
    take_lease(holder)
    other.pause_arm("kit")
    assert "kit" not in {one.arm for one in holder.decide_many(["old"] * 30)}
    take_lease(holder)
    other.add_arm(doral.Arm("call", features=[0.2, 0.9], cost=7.0))
    assert len(holder.decide_many([{"context": "old", "available": ["call"]}] * 2)) == 2
    take_lease(holder)
    other.repair_clock(to=time.time() - 30.0)
    assert len(holder.decide_many(["old"] * 3)) == 3
    take_lease(holder)
    other.close()
    with pytest.raises(CampaignClosed):
        holder.decide_many(["old"] * 3)
    assert not fold_of(other).leases
    log_is_whole(other)


def test_a_key_that_another_has_used_meanwhile(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = workers.create(make_problem())
    take_lease(holder)
    other = workers.campaign()
    session, made = leased(holder), list[Decision]()
    begin = session._open().begin_after

    def pause(*given: Any, **named: Any) -> Any:
        if not made:
            made.append(other.decide("old", key="both"))
        return begin(*given, **named)

    monkeypatch.setattr(session._log, "begin_after", pause)
    found = holder.decide_many(["young", {"context": "old", "key": "both"}])
    assert found[1].id == made[0].id
    with pytest.raises(KeyReused):
        holder.decide("young", key="both")
    with pytest.raises(UnknownName):
        holder.decide_many(["old", "nobody"])
    take_lease(holder)
    log_is_whole(other)


def test_a_correction_is_paid_out_of_the_own_lease(here: Workers) -> None:
    """Nothing else is left: the state on which is decided hears of it."""
    holder = here.create(make_problem(budget=60.0, horizon=1_000))
    made = next(one for one in holder.decide_many(["old", "young"] * 20) if one.arm is not None)
    holder.feedback(made.id, 1.0, actual_cost=0.0)
    take_lease(holder)
    plain = here.campaign(leases=False)
    while plain.ledger().left - plain.ledger().leased >= Decimal("0.3"):
        plain.decide_many(["old"] * 5)
    before = plain.ledger().leased
    holder.correct(made.id, 1.0, actual_cost=made.cost)
    assert before - Decimal(repr(made.cost)) <= plain.ledger().leased < before
    for _ in range(20):
        holder.decide_many(["old"] * 2)
    adds_up(plain)
    log_is_whole(plain)


def test_mixed_requests_are_stored_in_their_order(here: Workers) -> None:
    holder = here.create(make_problem())
    take_lease(holder)
    waiting = next(one for one in holder.decisions() if one.arm is not None)
    asked = [
        decision({"context": "old"}),
        answer({"decision_id": waiting.id, "reward": 0.5}),
        decision({"context": "nobody"}),
        decision({"context": "young"}),
    ]
    first, answered, refused, last = store_together(holder.session, asked)
    assert first.id < last.id
    assert answered.reward == 0.5
    assert isinstance(refused, DoralError)
    log_is_whole(holder)


class _Breaks:
    """A log whose connection breaks at a commit, before or after it took effect."""

    def __init__(self, log: Any, *, after: bool) -> None:
        self._commit, self._rollback, self._after = log.append_and_commit, log.rollback, after
        self.is_done = False

    def append_and_commit(self, *given: Any) -> None:
        if self.is_done:
            self._commit(*given)
            return
        self.is_done = True
        if self._after:
            self._commit(*given)
        else:
            self._rollback()
        raise ConnectionLost("the connection broke")


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize("n", [4, 20])  # many go another way
def test_a_commit_of_unknown_outcome(workers: Workers, after: bool, n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    holder = workers.create(make_problem())
    take_lease(holder, n)
    session = leased(holder)
    breaks = _Breaks(session._open(), after=after)
    monkeypatch.setattr(session._log, "append_and_commit", breaks.append_and_commit)
    made = holder.decide_many(["old"] * n)
    assert breaks.is_done
    judge = workers.campaign(leases=False)
    there = {one.id: one.arm for one in adds_up(judge)}
    assert len(there) == 3 * n
    assert {one.id: one.arm for one in made}.items() <= there.items()
    holder.decide_many(["young"] * 4)
    log_is_whole(judge)


def test_a_snapshot_holds_leases(workers: Workers) -> None:
    holder = workers.create(make_problem())
    take_lease(holder)
    holder.save_snapshot()
    restarted = workers.campaign(leases=False)
    assert restarted.ledger().leased > 0
    assert fold_of(restarted).leases.to_json() == fold_of(holder).leases.to_json()
    assert "leased" in str(restarted.report())
    assert "leased" in repr(restarted.ledger())
    log_is_whole(restarted)


def test_others_read_the_snapshots_of_one(workers: Workers, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where reading takes too long: here, always."""
    monkeypatch.setattr("doral.live.leases.session._READ_SHARE", -1.0)
    one, other = workers.create(make_problem(budget=5_000.0, horizon=10_000)), workers.campaign()
    for campaign in (one, other):
        campaign.session.snapshot_every = 40
        leased(campaign).merge_every_s = 0.0
    rebased, rng = set[int](), random.Random(2)
    acknowledged: dict[str, Decision] = {}
    for step in range(60):
        for campaign in (one, other):
            made = campaign.decide_many([rng.choice(["old", "young"]) for _ in range(10)])
            acknowledged |= {decision.id: decision for decision in made}
            scratch = leased(campaign)._scratch
            followed = campaign.session.last_seen
            if scratch is not None and followed is not None and scratch.base > followed.sequence:
                rebased.add(campaign.session.writer)
        if step % 20 == 19:
            one.feedback_many([(id_, 1.0) for id_, made_one in list(acknowledged.items())[-9:] if made_one.arm])
    assert rebased == {other.session.writer}  # the first that asked saves them
    judge = workers.campaign(leases=False)
    is_as_acknowledged(judge, acknowledged)
    log_is_whole(judge)


@pytest.mark.parametrize("harm", [None, "damaged", "of another log", "of other code"])
def test_who_was_away_reads_a_snapshot_first(
    workers: Workers, monkeypatch: pytest.MonkeyPatch, harm: str | None
) -> None:
    """And what came after it; where it is of no use, everything."""
    monkeypatch.setattr("doral.live.leases.session._WORTH_A_SNAPSHOT", 50)
    monkeypatch.setattr("doral.live.leases.session.SNAPSHOT_BYTES_PER_EVENT", 10**9)
    busy, away = workers.create(make_problem(budget=5_000.0, horizon=10_000)), workers.campaign()
    take_lease(away)
    take_lease(busy)
    for _ in range(20):
        busy.decide_many(["old", "young"] * 10)
    saved = busy.session.read(lambda _, fold: fold.sequence)
    data = busy.session.read(lambda _, fold: encode(fold))
    if harm == "damaged":
        data = data[:-1]
    elif harm == "of another log":
        data = workers.open().create("cold", make_problem()).session.read(lambda _, fold: encode(fold))
    elif harm == "of other code":  # that forgot to say so
        data = without_leases(data)
    busy.session.read(lambda log, _: log.save_snapshot(saved, data))
    busy.decide_many(["old", "young"] * 10)
    replayed: list[int] = []

    def spy(fold: Fold, events: list[Event], *given: Any, **named: Any) -> None:
        replayed.extend(event.sequence for event in events)
        replay(fold, events, *given, **named)

    for module in ("session", "leases.own_events"):
        monkeypatch.setattr(f"doral.live.{module}.replay", spy)
    away.decide_many(["old"] * 3)
    away.feedback_many([(one.id, 1.0) for one in away.decide_many(["old"] * 3) if one.arm is not None])
    assert (min(replayed) > saved) == (harm is None)
    log_is_whole(away)
    log_is_whole(workers.campaign(leases=False))


def without_leases(data: bytes) -> bytes:
    """A snapshot with a right checksum that this code cannot understand."""
    start = len(_MAGIC) + _DIGEST_BYTES
    end = start + _LENGTH_BYTES + int.from_bytes(data[start : start + _LENGTH_BYTES], "big")
    header = json.loads(data[start + _LENGTH_BYTES : end])
    del header["fold"]["leases"]
    text = json.dumps(header).encode()
    rest = len(text).to_bytes(_LENGTH_BYTES, "big") + text + data[end:]
    return _MAGIC + hashlib.sha256(rest).digest() + rest


def test_who_was_away_notices_events_that_are_missing(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though a snapshot stands for them."""
    monkeypatch.setattr("doral.live.leases.session._WORTH_A_SNAPSHOT", 50)
    monkeypatch.setattr("doral.live.leases.session.SNAPSHOT_BYTES_PER_EVENT", 10**9)
    with doral.open(postgres_url) as plain, doral.open(postgres_url, leases=True) as leasing:
        busy = plain.create("hot", make_problem(budget=5_000.0, horizon=10_000), seed=3)
        away = leasing.campaign("hot")
        away.decide("old")
        for _ in range(20):
            busy.decide_many(["old", "young"] * 10)
        busy.save_snapshot()
        with psycopg.connect(postgres_url) as connection:
            connection.execute("DELETE FROM doral.events WHERE sequence BETWEEN 100 AND 110")
        with pytest.raises(BrokenLog, match="after event 2 the log must have 400 events up to event 402"):
            away.decide_many(["old"] * 3)


@pytest.mark.parametrize("fails", ["doral.live.leases.own_events.marshal.dumps", "answer"])
def test_what_fails_after_the_commit_is_not_decided_again(
    here: Workers, monkeypatch: pytest.MonkeyPatch, fails: str
) -> None:
    one, other = here.create(make_problem()), here.campaign()
    for campaign in (one, other):
        take_lease(campaign)
    one.decide_many(["old"] * 2)
    before = len(list(one.decisions()))

    def no_room(*_: object) -> None:
        raise MemoryError("no room")

    asked = [decision({"context": "old"}) for _ in range(2)]
    if fails == "answer":
        monkeypatch.setattr(leased(one), "_keep", lambda *_: None)
        monkeypatch.setattr("doral.live.plan_decisions.make_decision", no_room)
        with pytest.raises(OutcomeUnknown, match="could not be told.*MemoryError: no room"):
            store_together(one.session, asked)
    else:
        monkeypatch.setattr(fails, no_room)
        assert len({made.id for made in store_together(one.session, asked)}) == 2
    monkeypatch.undo()
    assert len(list(one.decisions())) == before + 2
    log_is_whole(here.campaign(leases=False))


def test_a_forked_child_has_no_lease(here: Workers) -> None:
    holder = here.create(make_problem())
    take_lease(holder)
    session = leased(holder)
    before = session.writer
    session.renew()  # as in a child
    assert session.writer != before
    assert session._scratch is None
    assert len(holder.decide_many(["old"] * 3)) == 3
    log_is_whole(holder)


def test_where_no_leases_are_taken(here: Workers, tmp_path: Any) -> None:
    with pytest.raises(InvalidValue, match="PostgreSQL"):
        doral.open(f"sqlite:///{tmp_path}/a.db", leases=True)
    with pytest.raises(InvalidValue, match="leases"):
        doral.open("memory://", leases=1)  # type: ignore[arg-type]
    assert type(here.open(leases=False).create("plain", make_problem()).session) is Session
    likely = here.open().create("likely", make_problem(paid="on_answer", reserve=0.9))
    for _ in range(4):
        likely.decide_many(["old"] * 5)
    assert events_of(likely, LEASED) == []
    log_is_whole(likely)


def test_what_others_have_appended(store: Store) -> None:
    """In one look, and on every storage the same."""
    campaign = store.create("hot", make_problem(), seed=3)
    campaign.decide_many(["old"] * 3)
    session = campaign.session
    since, head = session.read(lambda log, fold: (fold.sequence, fold.head))
    made = campaign.decide_many([{"context": "old", "key": "a"}, "young", *["old", "young"] * 20])
    answered = next(one for one in made if one.arm is not None)
    campaign.feedback(answered.id, 1.0)

    def look(after: int, chain: bytes) -> Any:
        def ask(log: Log, _: Fold) -> Any:
            with log.writing():
                return log.tail(after, chain)

        return session.read(ask)

    fold = fold_of(campaign)
    tail = look(since, head)
    assert (tail.last, tail.head, tail.clock) == (fold.sequence, fold.head, fold.clock)
    assert (tail.round, tail.number) == (fold.round, fold.engine.played - 1)
    assert tail.is_keyed
    assert tail.ended == ()
    here = look(fold.sequence, fold.head)
    assert (here.last, here.head) == (fold.sequence, fold.head)
    assert (here.round, here.number, here.is_keyed) == (None, None, False)
    assert look(since, b"another") is None
    assert look(since + 10_000, head) is None
    campaign.pause_arm("kit")
    assert look(since, head) is None
