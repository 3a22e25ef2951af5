"""Requests that are stored together: as if they had come one after the other, for one commit."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

import doral
from doral.errors import DoralError
from doral.live import together
from doral.live.campaign import Campaign
from doral.live.decision import Decision
from doral.live.events import Event
from doral.live.session import Ask
from doral.live.store import Store
from tests.live.checks import adds_up, fold_of, log_is_whole
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


def ask_of(campaign: Campaign, request: Request) -> Ask:
    what, fields = request[0], for_campaign(campaign, request[1])
    if what == "decide":
        return together.decision(fields)
    if what == "decide_many":
        return together.decisions(fields["arrivals"])
    if what == "cancel":
        return together.cancellation(**fields)
    return {"feedback": together.answer, "correct": together.correction}[what](fields)


def in_groups(campaign: Campaign, groups: Sequence[Sequence[Request]]) -> list[Any]:
    """As a service does: whatever needs a transaction of its own stands between two groups."""
    found: list[Any] = []
    for group in groups:
        gathered: list[Request] = []
        for request in [*group, None]:
            if request is not None and request[0] != "expire":
                gathered.append(request)
                continue
            found += together.store_each(campaign.session, together.each(lambda one: ask_of(campaign, one), gathered))
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


def logged(campaign: Campaign) -> list[Event]:
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
