"""Requests that are stored together: as if they had come one after the other, for one commit."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import doral
from doral.errors import DoralError, InvalidValue, UnknownName
from doral.live.campaign import Campaign
from doral.live.errors import ConnectionLost, KeyReused, StorageBusy, StorageError, UnknownDecision, WrongState
from doral.live.events.row import Row
from doral.live.kinds.answer import Cancel, Cancellation, Correct, GiveAnswer, answer_of
from doral.live.kinds.decide import Decide, DecideMany, arrival_of
from doral.live.kinds.forget import Forget
from doral.live.kinds.request import Request as Ask
from doral.live.kinds.request import scoped_key
from doral.live.runtime.group_commit import each, store_each, store_together
from doral.live.storage.contract import Log
from doral.live.store import Store
from doral.live.views.decision import Decision
from tests.live.checks import adds_up, expire_as_before, fold_of, log_is_whole
from tests.live.tapes import same_bits

Opener = Callable[[str], Store]
Request = tuple[str, dict[str, Any]]

ARMS = [doral.Arm("letter", cost=0.5), doral.Arm("call", cost=3.0)]
PROBLEMS: dict[str, dict[str, Any]] = {
    "deadline": {"deadline": 6},
    "poor": {"deadline": 4, "budget": 7.0},
    "no deadline": {},
    "paid on answer": {"deadline": 6, "paid": "on_answer", "budget": 20.0},
    "people": {"deadline": 6, "person": ["age"], "missing": "mean"},
}


def make(store: Store, which: str, name: str = "one") -> Campaign:
    shared: dict[str, Any] = {"arms": ARMS, "contexts": {"old": 0.4, "young": 0.6}, "budget": 60.0, "horizon": 60}
    problem = doral.Problem(**{**shared, **PROBLEMS[which]})
    campaign = store.create(name, problem, seed=3, clock="rounds")
    campaign.decide_many(["young", "old", "young"] * 4)  # something that can be answered
    return campaign


def decision(fields: dict[str, Any]) -> Decide:
    return Decide(arrival_of(fields))


def decisions(arrivals: list[Any]) -> DecideMany:
    return DecideMany([arrival_of(one) for one in arrivals])


def answer(fields: dict[str, Any]) -> GiveAnswer:
    return GiveAnswer(answer_of(fields))


def correction(fields: dict[str, Any]) -> Correct:
    return Correct(answer_of(fields))


def cancellation(decision_id: str, key: str | None, at: object) -> Cancel:
    return Cancel(Cancellation(decision_id, scoped_key("a:", key), at))


class Broken(Ask[None]):
    """A request whose validation fails."""

    def __init__(self, fail: Callable[..., Any]) -> None:
        self.fail = fail

    def validate(self, *given: Any) -> Any:
        return self.fail(*given)

    def view(self, *_: Any) -> None:
        """It never comes to this."""


# --- requests, sensible and not -------------------------------------------------------------------------------------

KEYS = st.none() | st.none() | st.sampled_from(["a", "b", "c", "d"])
TIMES = st.none() | st.none() | st.integers(0, 20) | st.integers(8, 16) | st.just(-1)
NUMBERS = st.integers(1, 14)  # of the events that decisions are, and of others


def of(what: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[Request]:
    return st.tuples(st.just(what), st.fixed_dictionaries(fields))


ARRIVALS = {
    "context": st.sampled_from(["old", "young", "young", "young", "nobody"]),
    "available": st.none() | st.none() | st.sampled_from([["letter"], ["call"], ["letter", "fax"]]),
    "key": KEYS,
    "at": TIMES,
}
ANSWERS = {
    "decision_id": NUMBERS,
    "reward": st.sampled_from([0.0, 1.0, 0.5, 1.0, 0.0, float("nan")]),
    "key": KEYS,
    "actual_cost": st.none() | st.none() | st.sampled_from([0.0, 0.25, 0.5, 0.5, 9.0]),
    "at": TIMES,
}
DECIDE = of("decide", **ARRIVALS)
ANSWER = of("feedback", **ANSWERS)
REQUESTS = st.one_of(
    DECIDE,
    DECIDE,
    DECIDE,
    ANSWER,
    ANSWER,
    of("correct", **ANSWERS),
    of("cancel", decision_id=NUMBERS, key=KEYS, at=TIMES),
    of("decide_many", arrivals=st.lists(st.fixed_dictionaries(ARRIVALS), min_size=1, max_size=3)),
    of("expire", now=st.none() | st.integers(0, 12)),
)
GROUPS = st.lists(st.lists(REQUESTS, min_size=1, max_size=9), min_size=1, max_size=5)


def for_campaign(campaign: Campaign, fields: dict[str, Any]) -> dict[str, Any]:
    if "decision_id" in fields:
        return {**fields, "decision_id": f"{campaign.session.row.tag}-{fields['decision_id']}"}
    return fields


def alone(campaign: Campaign, request: Request) -> Any:
    what, fields = request
    try:
        return getattr(campaign, what)(**for_campaign(campaign, fields))
    except DoralError as error:
        return error


def ask_of(campaign: Campaign, request: Request) -> Ask[Any]:
    what, fields = request[0], for_campaign(campaign, request[1])
    if what == "decide":
        return decision(fields)
    if what == "decide_many":
        return decisions(fields["arrivals"])
    if what == "cancel":
        return cancellation(**fields)
    return {"feedback": answer, "correct": correction}[what](fields)


def in_groups(campaign: Campaign, groups: Sequence[Sequence[Request]]) -> list[Any]:
    """As a service does: whatever needs a transaction of its own stands between two groups."""
    found: list[Any] = []
    for group in groups:
        gathered: list[Request] = []
        for request in [*group, None]:
            if request is not None and request[0] != "expire":
                gathered.append(request)
                continue
            found += store_each(campaign.session, each(lambda one: ask_of(campaign, one), gathered))
            gathered = []
            if request is not None:
                found.append(alone(campaign, request))
    return found


def told(campaign: Campaign, result: Any) -> Any:
    """Without the name that the campaign has in identifiers."""
    if isinstance(result, DoralError):
        return type(result), str(result).replace(campaign.session.row.tag, "TAG")
    if isinstance(result, list):
        return [told(campaign, one) for one in result]
    return repr(result).replace(campaign.session.row.tag, "TAG"), _fields(campaign, result)


def _fields(campaign: Campaign, result: Any) -> Any:
    if not isinstance(result, Decision):
        return result
    found = {name: getattr(result, name) for name in Decision.__slots__}
    return {**found, "id": result.id.replace(campaign.session.row.tag, "TAG")}


def logged(campaign: Campaign) -> list[Row]:
    """All events, without what no two campaigns have in common."""
    events = campaign.session.read(lambda log, _: log.after(1))
    return [
        one._replace(at=0.0, writer=0, chain=b"", key_hash=None, person=one.person and "?", person_hash=None)
        for one in events
    ]


def assert_alike(grouped: Campaign, single: Campaign, groups: Sequence[Sequence[Request]]) -> None:
    found = in_groups(grouped, groups)
    expected = [alone(single, request) for group in groups for request in group]
    assert [told(grouped, one) for one in found] == [told(single, one) for one in expected]
    assert logged(grouped) == logged(single)
    assert grouped.ledger() == single.ledger()
    assert fold_of(grouped).counts.to_json() == fold_of(single).counts.to_json()
    assert same_bits(fold_of(grouped).engine.state, fold_of(single).engine.state) == []


@settings(max_examples=80)
@given(groups=GROUPS, which=st.sampled_from(list(PROBLEMS)))
def test_together_is_as_one_after_the_other(groups: list[list[Request]], which: str) -> None:
    with doral.open("memory://") as store:
        assert_alike(make(store, which), make(store, which, "two"), groups)


def test_it_is_so_in_every_store(store: Store) -> None:
    rng = random.Random(5)
    single = make(store, "deadline", "two")

    def arrival() -> dict[str, Any]:
        context = rng.choice(["old", "young", "young", "nobody"])
        return {"context": context, "key": rng.choice([None, None, "a", "b", "c"]), "at": None, "available": None}

    def request() -> Request:
        what = rng.choice(["decide", "decide", "feedback", "feedback", "cancel", "correct", "decide_many", "expire"])
        about = {"decision_id": rng.randint(1, 60), "key": rng.choice([None, None, "a", "b"]), "at": None}
        if what == "decide":
            return what, arrival()
        if what == "decide_many":
            return what, {"arrivals": [arrival(), arrival()]}
        if what == "expire":
            return what, {"now": None}
        return what, about if what == "cancel" else {**about, "reward": rng.choice([0.0, 1.0]), "actual_cost": None}

    groups = [[request() for _ in range(rng.randint(1, 12))] for _ in range(14)]
    grouped = make(store, "deadline")
    assert_alike(grouped, single, groups)
    log_is_whole(grouped)
    adds_up(grouped)


# --- a result for each ----------------------------------------------------------------------------------------------


def test_what_is_wrong_with_one_does_not_keep_the_others_out(store: Store) -> None:
    campaign = make(store, "deadline")
    before = campaign.report().arrivals
    arrivals: list[Any] = ["young", "nobody", {"context": "old", "key": "k"}, {"contxt": "old"}, 7]
    arrivals += [{"context": "old", "key": "k"}, {"context": "young", "key": "k"}, {"context": "old", "at": -5}]
    first, nobody, keyed, misspelt, number, again, reused, early = campaign.decide_each(arrivals)
    assert isinstance(first, Decision)
    assert isinstance(nobody, UnknownName)
    assert isinstance(keyed, Decision)
    assert isinstance(misspelt, InvalidValue)
    assert isinstance(number, InvalidValue)
    assert again == keyed
    assert isinstance(reused, KeyReused)
    assert isinstance(early, InvalidValue)
    assert campaign.report().arrivals == before + 2
    adds_up(campaign)


def test_answers_have_a_result_each(store: Store) -> None:
    campaign = make(store, "deadline")
    one, other = list(campaign.decisions("pending"))[:2]
    found = campaign.feedback_each(
        [(one.id, 1.0), ("nonsense", 1.0), (other.id, float("inf")), (one.id, 1.0), (one.id, 0.0), (other.id, 0.5)]
    )
    kinds = [Decision, UnknownDecision, InvalidValue, Decision, WrongState, Decision]
    assert [type(result) for result in found] == kinds
    assert campaign.decision(one.id).reward == 1.0
    assert campaign.decision(other.id).reward == 0.5
    assert campaign.feedback_each([]) == campaign.decide_each([]) == []
    adds_up(campaign)
    log_is_whole(campaign)


def test_answers_of_one_group_do_not_overdraw_the_budget_together() -> None:
    """Each alone could still be paid for; both cannot."""
    with doral.open("memory://") as store:
        problem = doral.Problem(arms=[doral.Arm("call", cost=3.0)], contexts=["all"], budget=8.0, horizon=3, deadline=2)
        campaign = store.create("one", problem, seed=1, clock="rounds")
        made = campaign.decide_many(["all", "all"])
        assert [one.state for one in made] == ["pending", "pending"]
        expire_as_before(campaign, 5, release=True)
        last = campaign.decide("all")
        assert last.state == "pending"
        first, second = campaign.feedback_each(
            [{"decision_id": one.id, "reward": 1.0, "actual_cost": 3.0} for one in made]
        )
        assert isinstance(first, Decision)
        assert isinstance(second, WrongState)
        assert campaign.ledger().left == 2
        # What another one gives back before it counts.
        given_back = {"decision_id": last.id, "reward": 1.0, "actual_cost": 0.0}
        paid = {"decision_id": made[1].id, "reward": 1.0, "actual_cost": 3.0}
        assert [type(one) for one in campaign.feedback_each([given_back, paid])] == [Decision, Decision]
        adds_up(campaign)


# --- what fails, fails for all --------------------------------------------------------------------------------------


def some(campaign: Campaign, n: int = 3) -> list[Ask[Any]]:
    pending = next(campaign.decisions("pending"))
    keyed = [decision({"context": "old", "key": f"new-{i}"}) for i in range(n)]
    return [*keyed, answer({"decision_id": pending.id, "reward": 1.0}), *keyed[:1]]


def breaking(campaign: Campaign, method: str, error: Exception, *, after: bool) -> list[int]:
    """Has the next call of a method of the log fail, before or after it was done; how often it was called."""
    log: Any = campaign.session.read(lambda log, _: log)
    original, calls = getattr(log, method), list[int]()

    def fail(*arguments: Any) -> None:
        calls.append(1)
        if after:
            original(*arguments)
        delattr(log, method)
        raise error

    setattr(log, method, fail)
    return calls


@pytest.mark.parametrize("method", ["append", "commit"])
def test_a_failing_store_fails_all_and_nothing_is_stored(method: str, store: Store) -> None:
    campaign = make(store, "deadline")
    before, ledger, decisions = logged(campaign), campaign.ledger(), list(campaign.decisions())
    asked = some(campaign)
    calls = breaking(campaign, method, StorageError("the disk is full"), after=False)
    with pytest.raises(StorageError, match="disk is full"):
        campaign.session.write_together(asked)
    assert calls == [1]
    assert logged(campaign) == before
    assert campaign.ledger() == ledger
    assert list(campaign.decisions()) == decisions
    found = campaign.session.write_together(asked)
    assert [type(one) for one in found] == [Decision] * 5
    assert found[0].id == found[4].id
    adds_up(campaign)
    log_is_whole(campaign)


@pytest.mark.parametrize("after", [False, True])
def test_a_connection_that_breaks_during_the_commit_stores_all_once(after: bool, durable_url: str) -> None:
    with doral.open(durable_url) as store:
        campaign = make(store, "deadline")
        before, asked = campaign.report().arrivals, some(campaign)
        breaking(campaign, "commit", ConnectionLost("cut"), after=after)
        found = campaign.session.write_together(asked)
        assert [type(one) for one in found] == [Decision] * 5
        assert campaign.report().arrivals == before + 3
        assert [campaign.decision(one.id) for one in found] == found
        adds_up(campaign)
        log_is_whole(campaign)


def test_all_that_are_refused_leave_nothing_behind(store: Store) -> None:
    campaign = make(store, "deadline")
    before = logged(campaign)
    refused = [decision({"context": "nobody"}), answer({"decision_id": "x", "reward": 1.0})]
    found = store_together(campaign.session, refused)
    assert [type(one) for one in found] == [UnknownName, UnknownDecision]
    assert logged(campaign) == before


def test_one_request_that_breaks_planning_does_not_take_the_others_with_it(store: Store) -> None:
    """As a damaged event does that one of them looks up."""
    campaign = make(store, "deadline")
    before = campaign.report().arrivals

    def broken(log: Log, fold: object, stamp: object) -> Any:
        raise ZeroDivisionError

    good = decision({"context": "old"})
    first, middle, last = store_together(campaign.session, [good, Broken(broken), good])
    assert isinstance(first, Decision)
    assert isinstance(middle, StorageError)
    assert isinstance(last, Decision)
    assert campaign.report().arrivals == before + 2
    log_is_whole(campaign)


def test_a_store_that_is_broken_is_not_asked_for_everybody(store: Store) -> None:
    campaign = make(store, "deadline")
    calls: list[int] = []

    def broken(log: Log, fold: object, stamp: object) -> Any:
        calls.append(1)
        raise ZeroDivisionError

    found = store_together(campaign.session, [Broken(broken)] * 20)
    assert [isinstance(one, StorageError) for one in found] == [True] * 20
    assert len(calls) == 1 + 3


def test_a_bug_behind_one_request_leaves_the_others_their_results(store: Store) -> None:
    campaign = make(store, "deadline")
    before = campaign.report().arrivals

    def broken(log: Log, fold: object, stamp: object) -> Any:
        raise AssertionError("a bug")

    good = decision({"context": "old"})
    first, middle, last = store_together(campaign.session, [good, Broken(broken), good])
    assert isinstance(middle, AssertionError)
    assert [type(first), type(last)] == [Decision, Decision]
    with pytest.raises(AssertionError, match="a bug"):
        store_each(campaign.session, [good, Broken(broken), good])
    assert campaign.report().arrivals == before + 4


def test_a_store_that_fails_while_they_are_stored_one_by_one_is_not_asked_again() -> None:
    with doral.open("memory://") as store:
        campaign, calls = make(store, "deadline"), list[int]()

        def broken(log: Log, fold: object, stamp: object) -> Any:
            calls.append(1)
            raise StorageBusy("others have kept it locked") if len(calls) > 1 else AssertionError("a bug")

        good = decision({"context": "old"})
        first, *others = store_together(campaign.session, [good, Broken(broken), good, good])
        assert isinstance(first, Decision)
        assert [type(one) for one in others] == [StorageBusy] * 3
        assert len(calls) == 2


def test_people_are_forgotten_alone(store: Store) -> None:
    campaign = make(store, "people")
    campaign.decide("old", key="k", features={"age": 40})
    plan = (decision({"context": "old"}), forget("k"), decision({"context": "old"}))
    before = logged(campaign)
    with pytest.raises(ValueError, match="must be the last"):
        campaign.session.write_together(plan)
    assert logged(campaign) == before
    assert campaign.forget("k") == 1


def forget(key: str) -> Ask[Any]:
    return Forget([key], None)


def test_two_sessions_that_store_groups_at_once(durable_url: str) -> None:
    def run(store: Store, name: str) -> None:
        campaign = store.campaign("one")
        for i in range(6):
            asked = [decision({"context": "old", "key": f"{i}-{j}"}) for j in range(5)]
            asked += [decision({"context": "young", "key": f"{name}-{i}-{j}"}) for j in range(5)]
            found = store_together(campaign.session, asked)
            assert all(isinstance(one, Decision) for one in found)
            results[name] += [one.id for one in found[:5]]

    results: dict[str, list[str]] = {"a": [], "b": []}
    with doral.open(durable_url) as first, doral.open(durable_url) as second:
        campaign = make(first, "deadline")
        before = campaign.report().arrivals
        with ThreadPoolExecutor(2) as threads:
            list(threads.map(run, (first, second), ("a", "b")))
        assert results["a"] == results["b"]  # the same keys gave the same decisions
        assert campaign.report().arrivals == before + 30 + 60
        adds_up(campaign)
        log_is_whole(campaign)


# --- pages of decisions ---------------------------------------------------------------------------------------------


def test_pages_of_decisions_are_all_decisions(store: Store) -> None:
    campaign = make(store, "deadline")
    campaign.decide_each(["young"] * 30)
    for made in list(campaign.decisions("pending"))[:7]:
        campaign.feedback(made.id, 1.0)
    for state in (None, "pending", "returned", "cancelled", "skipped"):
        found: list[Decision] = []
        after: str | None = None
        for _ in range(50):
            page = campaign.decision_page(after, state, limit=4)
            assert len(page.decisions) <= 4
            found += page.decisions
            after = page.next
            if after is None:
                break
        assert found == list(campaign.decisions(state))
    for wrong in ({"state": "lost"}, {"limit": 0}, {"limit": 100_000}, {"after": "nonsense"}, {"after": "00000000-3"}):
        with pytest.raises(DoralError):
            campaign.decision_page(**wrong)


def test_a_decision_is_found_by_its_key(store: Store) -> None:
    campaign = make(store, "deadline")
    made = campaign.decide("old", key="k")
    campaign.top_up(1.0, key="other")
    assert campaign.decision_with_key("k") == made
    assert campaign.decision_with_key("other") is None
    assert campaign.decision_with_key("never") is None
    with pytest.raises(InvalidValue):
        campaign.decision_with_key("")
