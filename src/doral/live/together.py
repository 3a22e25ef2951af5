"""Requests of several callers, stored together: as if they had come one after the other, for one wait for the disk.

Single requests of one kind that follow each other are planned in one step, and the engine is called once for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Any

from doral.errors import DoralError
from doral.live.errors import ConnectionLost, OutcomeUnknown, StorageBusy
from doral.live.events import ANSWER_SCOPE
from doral.live.plan_amendments import plan_cancellation, plan_correction
from doral.live.plan_answers import are_alike, plan_answer, plan_answers, plan_answers_each
from doral.live.plan_decisions import plan_decision, plan_decisions, plan_decisions_each
from doral.live.plan_records import plan_records
from doral.live.requests import CancelRequest, answer_of, arrival_of, as_batch, record_of, scoped_key
from doral.live.session import Ask, Session
from doral.problem import Problem

_MOST_FAILURES = 3
_STORE_FAILS = (ConnectionLost, OutcomeUnknown, StorageBusy)  # whoever asks next waits for it in vain, too

# --- what can be asked together ---------------------------------------------------------------------------------------


def decision(arrival: Mapping[str, Any]) -> Ask:
    """One arrival, with the arguments of `Campaign.decide`."""
    return plan_decision, (arrival_of(arrival),)


def decisions(arrivals: Iterable[Mapping[str, Any]]) -> Ask:
    """Many, all or none."""
    return plan_decisions, ([arrival_of(one) for one in as_batch("arrivals", arrivals)],)


def answer(given: Mapping[str, Any]) -> Ask:
    """One answer, with the arguments of `Campaign.feedback`."""
    return plan_answer, (answer_of(given),)


def answers(given: Iterable[Mapping[str, Any]]) -> Ask:
    """Many, all or none."""
    return plan_answers, ([answer_of(one) for one in as_batch("answers", given)],)


def correction(given: Mapping[str, Any]) -> Ask:
    """Of one answer."""
    return plan_correction, (answer_of(given),)


def cancellation(decision_id: str, key: str | None, at: object) -> Ask:
    """Of one decision."""
    return plan_cancellation, (CancelRequest(decision_id, scoped_key(ANSWER_SCOPE, key), at),)


def records(given: Iterable[Mapping[str, Any]]) -> Ask:
    """Decisions that were made elsewhere, all or none."""
    return plan_records, ([record_of(one) for one in as_batch("records", given)],)


def each(ask: Callable[[Any], Ask], given: Iterable[Any]) -> list[Ask | DoralError]:
    """What is asked for each of these; the error of one that cannot be asked."""

    def one(item: Any) -> Ask | DoralError:
        try:
            return ask(item)
        except DoralError as error:
            return error

    return [one(item) for item in given]


# --- storing ----------------------------------------------------------------------------------------------------------


def store_each(session: Session, asked: Sequence[Ask | DoralError]) -> list[Any]:
    """Store what is asked in one transaction; the result of each, or its error.

    What is no error of the library is raised, once the others are stored.

    Args:
        session: Of the campaign.
        asked: What `each` gives; the error of one that could not be asked is its result.
    """
    found = iter(store_together(session, [one for one in asked if not isinstance(one, DoralError)]))
    results = [one if isinstance(one, DoralError) else next(found) for one in asked]
    for one in results:
        if isinstance(one, Exception) and not isinstance(one, DoralError):
            raise one
    return results


def store_together(session: Session, asked: Sequence[Ask]) -> list[Any]:
    """The same for requests that could all be asked; whatever error one of them leads to is its result.

    Where the store fails, all of them fail, and nothing is stored. But one request that leads to a failure which nobody
    foresaw must not take the others with it: they are then stored one by one.
    """
    if not asked:
        return []
    try:
        return _store(session, asked)
    except _STORE_FAILS:
        raise
    except Exception:
        if len(asked) == 1:
            raise
    return _one_by_one(session, asked)


def _one_by_one(session: Session, asked: Sequence[Ask]) -> list[Any]:
    """Where the store fails, or several in a way that nobody foresaw, it is not asked for all the others as well."""
    found: list[Any] = []
    failed = 0
    for one in asked:
        try:
            found += _store(session, [one])
        except Exception as error:  # noqa: BLE001  (others before it are stored, and have to hear of that)
            found.append(error)
            failed += 1
            if isinstance(error, _STORE_FAILS) or failed == _MOST_FAILURES:
                return found + [error] * (len(asked) - len(found))
    return found


def _store(session: Session, asked: Sequence[Ask]) -> list[Any]:
    requests: list[Ask] = []
    sizes: list[int] = []  # how many of those that were asked each stands for
    for plan, group in groupby(asked, key=itemgetter(0)):
        same = list(group)
        together = _in_one_step(session, plan, same) if len(same) > 1 else None
        requests += same if together is None else [together]
        sizes += [1] * len(same) if together is None else [len(same)]
    found: list[Any] = []
    for size, result in zip(sizes, session.write_together(requests), strict=True):
        if size == 1:
            found.append(result)
        else:
            found += [result] * size if isinstance(result, DoralError) else result
    return found


def _in_one_step(session: Session, plan: object, same: Sequence[Ask]) -> Ask | None:
    """These requests as one, where that is the same."""
    if plan is plan_decision:
        return plan_decisions_each, ([asked[0] for _, asked in same],)
    if plan is plan_answer:
        answers = [asked[0] for _, asked in same]
        return (plan_answers_each, (answers,)) if are_alike(_problem(session), answers) else None
    return None


def _problem(session: Session) -> Problem:
    """As it was seen last: what does not change of it."""
    seen = session.last_seen
    return session.read(lambda _, fold: fold.problem) if seen is None else seen.problem
