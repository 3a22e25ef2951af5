"""From a change to the campaign itself to its draft; whatever is wrong is said here, before anything changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence

from doral import _check
from doral.errors import InvalidValue
from doral.live.apply_changes import STATUS_AFTER
from doral.live.drafts import Planned, stamped
from doral.live.errors import KeyReused
from doral.live.events import ARM_ADDED, CLOSED, EXPIRED, EXTENDED, TOPPED_UP, Event
from doral.live.fold import Fold
from doral.live.roster import ARM_IS_RETIRED, arm_to_json
from doral.live.storage.contract import Log
from doral.problem import Arm

_DRAFT = Event(0, 0, 0.0, 0.0, 0)


def plan_new_arm(log: Log, fold: Fold, arm: Arm, key: str | None, writer: int) -> Planned[None]:
    def is_new(fold: Fold) -> bool:
        fold.refuse_if_closed()
        if arm in fold.problem.arms:
            return False
        _check.no_duplicates("name of an arm", (*fold.problem.arm_names, arm.name))
        if len(arm.features) != fold.problem.n_features:
            remedy = f"must be {fold.problem.n_features}, as for the other arms"
            raise InvalidValue(f"number of features of arm {arm.name!r}", len(arm.features), remedy)
        return True

    draft = _DRAFT._replace(kind=ARM_ADDED, key=key, data=json.dumps(arm_to_json(arm)))
    return _plan_once(log, fold, draft, writer, is_new)


def plan_arm_status(log: Log, fold: Fold, name: str, kind: int, writer: int) -> Planned[None]:
    """An arm is paused, resumed or retired."""
    del log
    arm = fold.problem.arm_index(name)
    fold.refuse_if_closed()
    if fold.roster.status[arm] == STATUS_AFTER[kind]:
        return [], _no_answer
    if fold.roster.status[arm] == ARM_IS_RETIRED:
        raise InvalidValue("arm", name, "is retired, for good; add it under a new name")
    return [stamped(_DRAFT._replace(kind=kind, arm=arm), fold, writer, None)], _no_answer


def plan_top_up(log: Log, fold: Fold, amount: float, key: str | None, writer: int) -> Planned[None]:
    draft = _DRAFT._replace(kind=TOPPED_UP, key=key, value=amount)
    return _plan_once(log, fold, draft, writer, _always)


def plan_extension(log: Log, fold: Fold, rounds: int, key: str | None, writer: int) -> Planned[None]:
    draft = _DRAFT._replace(kind=EXTENDED, key=key, data=json.dumps({"rounds": rounds}))
    return _plan_once(log, fold, draft, writer, _always)


def plan_closing(log: Log, fold: Fold, writer: int) -> Planned[None]:
    return _plan_once(log, fold, _DRAFT._replace(kind=CLOSED), writer, lambda fold: not fold.closed)


def plan_expiry(log: Log, fold: Fold, now: object, writer: int) -> Planned[int]:
    """Decisions that are too old for an answer to count; how many."""
    draft = stamped(_DRAFT._replace(kind=EXPIRED), fold, writer, now)
    upto, by_arm = _overdue(log, fold, draft.clock)
    count = sum(many for _, many in by_arm)
    if count == 0:
        return [], lambda _: 0
    return [draft._replace(data=json.dumps({"upto": upto, "by_arm": by_arm}))], lambda _: count


def _overdue(log: Log, fold: Fold, clock: float) -> tuple[list[int], list[tuple[int, int]]]:
    """Up to which decision each context's have expired by now, and how many of each arm's expire with it."""
    by_deadline: dict[float, list[int]] = {}
    for context, deadline in enumerate(fold.problem.deadlines.tolist()):
        by_deadline.setdefault(deadline, []).append(context)
    upto, by_arm = list(fold.expired_upto), dict[int, int]()
    for contexts in by_deadline.values():
        last, found = log.overdue(
            after=upto[contexts[0]],
            clock=clock,
            age_limit=fold.age_limit(contexts[0]),
            contexts=None if len(by_deadline) == 1 else contexts,
        )
        for context in contexts:
            upto[context] = last
        for arm, count in found:
            by_arm[arm] = by_arm.get(arm, 0) + count
    return upto, sorted(by_arm.items())


def _plan_once(log: Log, fold: Fold, draft: Event, writer: int, is_needed: Callable[[Fold], bool]) -> Planned[None]:
    """The change, unless it was made before under the same key."""
    known = None if draft.key is None else log.by_keys([draft.key]).get(draft.key)
    if known is None and is_needed(fold):
        return [stamped(draft, fold, writer, None)], _no_answer
    if known is not None and (known.kind, known.value, known.data) != (draft.kind, draft.value, draft.data):
        said = (draft.key or "")[2:]
        raise KeyReused(f"key = {said!r}: was used before with another content; make a new key for each request")
    return [], _no_answer


def _always(fold: Fold) -> bool:
    fold.refuse_if_closed()
    return True


def _no_answer(events: Sequence[Event]) -> None:
    """There is nothing to tell."""
    del events
