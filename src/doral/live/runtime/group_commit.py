"""Requests of several callers, stored together: as if they had come one after the other, for one wait for the disk.

Single requests of one kind that follow each other are validated in one step, and the engine is called once for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

from doral.errors import DoralError
from doral.live.errors import ConnectionLost, OutcomeUnknown, StorageBusy
from doral.live.kinds.answer import GiveAnswer, GiveAnswers, are_alike
from doral.live.kinds.decide import Decide, DecideMany
from doral.live.kinds.request import Request
from doral.live.runtime.session import Session
from doral.problem import Problem

_MOST_FAILURES = 3
_STORE_FAILS = (ConnectionLost, OutcomeUnknown, StorageBusy)  # the next request would wait for it in vain, too


def each(ask: Callable[[Any], Request[Any]], given: Iterable[Any]) -> list[Request[Any] | DoralError]:
    """Return the request for each of these; the error of one that cannot be asked."""

    def one(item: Any) -> Request[Any] | DoralError:
        try:
            return ask(item)
        except DoralError as error:
            return error

    return [one(item) for item in given]


def store_each(session: Session, asked: Sequence[Request[Any] | DoralError]) -> list[Any]:
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


def store_together(session: Session, asked: Sequence[Request[Any]]) -> list[Any]:
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


def _one_by_one(session: Session, asked: Sequence[Request[Any]]) -> list[Any]:
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


def _store(session: Session, asked: Sequence[Request[Any]]) -> list[Any]:
    requests: list[Request[Any]] = []
    sizes: list[int] = []  # how many of those that were asked each stands for
    for _, group in groupby(asked, key=type):
        same = list(group)
        together = _in_one_step(session, same) if len(same) > 1 else None
        requests += same if together is None else [together]
        sizes += [1] * len(same) if together is None else [len(same)]
    found: list[Any] = []
    for size, result in zip(sizes, session.write_together(requests), strict=True):
        if size == 1:
            found.append(result)
        else:
            found += [result] * size if isinstance(result, DoralError) else result
    return found


def _in_one_step(session: Session, same: Sequence[Request[Any]]) -> Request[Any] | None:
    """Return these requests as one, where that is the same."""
    if isinstance(same[0], Decide):
        return DecideMany([one.arrival for one in same if isinstance(one, Decide)], is_each=True)
    answers = [one.answer for one in same if isinstance(one, GiveAnswer)]
    if answers and are_alike(_problem(session), answers):
        return GiveAnswers(answers, is_each=True)
    return None


def _problem(session: Session) -> Problem:
    """Return it as it was seen last: what does not change of it."""
    seen = session.last_seen
    return session.read(lambda _, state: state.problem) if seen is None else seen.problem
