"""What callers ask, checked as far as that can be done without looking at the campaign."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from doral import _check
from doral.errors import DoralError, InvalidValue
from doral.live.events import ANSWER_SCOPE, DECIDE_SCOPE
from doral.live.people import NOTHING_ASKED, Asked, asked_of
from doral.problem import MAX_AMOUNT, MAX_ARMS, MIN_AMOUNT

MAX_BATCH = 100_000


class ArrivalRequest:
    __slots__ = ("at", "available", "context", "key", "who")

    def __init__(
        self,
        context: str | None,
        available: list[str] | None,
        key: str | None,
        at: object,
        who: Asked = NOTHING_ASKED,
    ) -> None:
        self.context, self.available, self.key, self.at, self.who = context, available, key, at, who


class AnswerRequest:
    __slots__ = ("actual_cost", "at", "decision_id", "key", "reward")

    def __init__(self, decision_id: str, reward: float, key: str | None, actual_cost: float | None, at: object) -> None:
        self.decision_id, self.reward, self.key = decision_id, reward, key
        self.actual_cost, self.at = actual_cost, at


class CancelRequest:
    __slots__ = ("at", "decision_id", "key")

    def __init__(self, decision_id: str, key: str | None, at: object) -> None:
        self.decision_id, self.key, self.at = decision_id, key, at


class RecordRequest(NamedTuple):
    context: str | None
    arm: str | None
    at: object
    reward: float | None
    answered_at: object
    cost: float | None
    probability: float | None
    spend: bool
    key: str | None
    who: Asked


def make_record(
    context: str | None,
    arm: str | None,
    at: object,
    reward: float | None = None,
    answered_at: object = None,
    cost: float | None = None,
    probability: float | None = None,
    spend: bool = False,
    key: str | None = None,
    *,
    features: object = None,
    weight: float | None = None,
    deadline: float | None = None,
) -> RecordRequest:
    if not isinstance(spend, bool):
        raise InvalidValue("spend", spend, "must be True or False")
    return RecordRequest(
        context,
        arm,
        at,
        reward=None if reward is None else _check.finite_number("reward", reward) + 0.0,
        answered_at=answered_at,
        cost=None if cost is None else _check.finite_number("cost", cost, at_least=0) + 0.0,
        probability=None
        if probability is None
        else _check.finite_number("probability", probability, above=0, at_most=1),
        spend=spend,
        key=scoped_key(DECIDE_SCOPE, key),
        who=asked_of(features, weight, deadline),
    )


def record_of(one: object) -> RecordRequest:
    optional = ("context", "reward", "answered_at", "cost", "probability", "spend", "key", *Asked._fields)
    given = _check.keys("record", one, required=("arm", "at"), optional=optional)
    return make_record(given.pop("context", None), **given)


def make_arrival(
    context: str | None = None,
    available: Iterable[str] | None = None,
    key: str | None = None,
    at: object = None,
    *,
    features: object = None,
    weight: float | None = None,
    deadline: float | None = None,
) -> ArrivalRequest:
    if available is not None:
        available = _read_all("available", available, "must be a list of names of arms", at_most=MAX_ARMS)
    who = asked_of(features, weight, deadline)
    return ArrivalRequest(context, available, scoped_key(DECIDE_SCOPE, key), at, who)


def arrival_of(one: object) -> ArrivalRequest:
    if isinstance(one, str):
        return ArrivalRequest(one, None, None, None)
    optional = ("context", "available", "key", "at", *Asked._fields)
    return make_arrival(**_check.keys("arrival", one, required=(), optional=optional))


def make_answer(
    decision_id: str, reward: float, key: str | None = None, actual_cost: float | None = None, at: object = None
) -> AnswerRequest:
    if actual_cost is not None:
        actual_cost = _check.finite_number("actual_cost", actual_cost, at_least=0) + 0.0
    return AnswerRequest(
        # A negative zero is a zero: SQLite gives it back as one.
        decision_id,
        _check.finite_number("reward", reward) + 0.0,
        scoped_key(ANSWER_SCOPE, key),
        actual_cost,
        at,
    )


def answer_of(one: object) -> AnswerRequest:
    if isinstance(one, tuple) and len(one) == 2:
        return make_answer(*one)
    optional = ("key", "actual_cost", "at")
    return make_answer(**_check.keys("answer", one, required=("decision_id", "reward"), optional=optional))


def top_up_amount(given: object) -> float:
    """How much more there is to spend; within the limits of a budget."""
    return _check.finite_number("amount", given, at_least=MIN_AMOUNT, at_most=MAX_AMOUNT)


def scoped_key(scope: str, key: str | None) -> str | None:
    return None if key is None else scope + _check.name("key", key)


def as_batch(field: str, given: Iterable[Any]) -> Sequence[Any]:
    return _read_all(field, given, "must be a list", at_most=MAX_BATCH)


def _read_all(field: str, given: object, remedy: str, *, at_most: int) -> list[Any]:
    """What a list, a set, an array or a generator gives; never more than is allowed, even if it would go on."""
    if isinstance(given, str | bytes | bytearray | Mapping):
        raise InvalidValue(field, given, remedy)
    try:
        found = iter(given)  # type: ignore[call-overload]
    except Exception as error:
        raise InvalidValue(field, given, remedy) from error
    try:
        batch = list(islice(found, at_most + 1))
    except DoralError:
        raise
    except Exception as error:  # a generator of the caller's
        said = f"could not be read to its end: {type(error).__name__}: {error}"
        raise InvalidValue(field, given, said) from error
    if len(batch) > at_most:
        raise InvalidValue(f"number of {field}", f"more than {at_most:,}", f"must be at most {at_most:,} at once")
    return batch
