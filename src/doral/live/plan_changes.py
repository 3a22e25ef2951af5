"""From a change to the campaign itself to its draft; whatever is wrong is said here, before anything changes."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence

from doral import _check
from doral.errors import InvalidValue
from doral.live.apply_changes import STATUS_AFTER
from doral.live.drafts import Planned, Stamp
from doral.live.events import ARM_ADDED, CLOCK_SET, CLOSED, EXPIRED, EXTENDED, TOPPED_UP, Event, known
from doral.live.fold import Fold
from doral.live.keys import is_granted, note_of
from doral.live.ledger import exact, plus
from doral.live.roster import ARM_IS_RETIRED, arm_to_json
from doral.live.storage.contract import Log
from doral.live.words import duration
from doral.problem import MAX_AMOUNT, MAX_HORIZON, Arm, n_given_features

_DRAFT = Event(0, 0, 0.0, 0.0, 0)


def plan_new_arm(log: Log, fold: Fold, arm: Arm, key: str | None, stamp: Stamp) -> Planned[None]:
    def is_new(fold: Fold) -> bool:
        fold.refuse_if_closed()
        n_features = n_given_features(fold.problem)
        if any(
            (arm.name, arm.features, arm.cost) == (one.name, one.features[:n_features], one.cost)
            for one in fold.problem.arms
        ):
            return False
        _check.no_duplicates("name of an arm", (*fold.problem.arm_names, arm.name))
        if len(arm.features) != n_features:
            remedy = f"must be {n_features}, as for the other arms"
            raise InvalidValue(f"number of features of arm {arm.name!r}", len(arm.features), remedy)
        return True

    draft = _DRAFT._replace(kind=ARM_ADDED, key=key, data=json.dumps(arm_to_json(arm)))
    return _plan_once(log, fold, draft, stamp, is_new)


def plan_arm_status(log: Log, fold: Fold, name: str, kind: int, stamp: Stamp) -> Planned[None]:
    """An arm is paused, resumed or retired."""
    del log
    arm = fold.problem.arm_index(name)
    fold.refuse_if_closed()
    if arm == fold.problem.control:
        raise InvalidValue("arm", name, "is what those get who are skipped: it can always be had")
    if fold.roster.status[arm] == STATUS_AFTER[kind]:
        return [], _no_answer
    if fold.roster.status[arm] == ARM_IS_RETIRED:
        raise InvalidValue("arm", name, "is retired, for good; add it under a new name")
    return [stamp.put(_DRAFT._replace(kind=kind, arm=arm), fold)], _no_answer


def plan_top_up(log: Log, fold: Fold, amount: float, key: str | None, stamp: Stamp) -> Planned[None]:
    def has_room(fold: Fold) -> bool:
        fold.refuse_if_closed()
        if plus(fold.ledger.total, exact(amount)) > exact(MAX_AMOUNT):
            remedy = f"makes a budget of more than {MAX_AMOUNT:g}: give a smaller one, or use another unit"
            raise InvalidValue("amount", amount, remedy)
        return True

    draft = _DRAFT._replace(kind=TOPPED_UP, key=key, value=amount)
    return _plan_once(log, fold, draft, stamp, has_room)


def plan_extension(log: Log, fold: Fold, rounds: int, key: str | None, stamp: Stamp) -> Planned[None]:
    if fold.engine.until is not None:
        raise InvalidValue("rounds", rounds, "this campaign ends with a date: extend(until=...) moves it")

    def has_room(fold: Fold) -> bool:
        fold.refuse_if_closed()
        if fold.engine.horizon + rounds > MAX_HORIZON:
            raise InvalidValue("rounds", rounds, f"makes a horizon of more than {MAX_HORIZON:,}: give fewer")
        return True

    draft = _DRAFT._replace(kind=EXTENDED, key=key, data=json.dumps({"rounds": rounds}))
    return _plan_once(log, fold, draft, stamp, has_room)


def plan_later_end(log: Log, fold: Fold, until: float, key: str | None, stamp: Stamp) -> Planned[None]:
    """`until` is in seconds since 1970."""
    clock = until - fold.definition.epoch

    def is_later(fold: Fold) -> bool:
        fold.refuse_if_closed()
        end = fold.engine.until
        if end is None:
            raise InvalidValue("until", until, "this campaign ends with a number of arrivals: extend it by rounds")
        if clock < end:
            raise InvalidValue("until", until, "is before the campaign's end: an end is only moved to a later date")
        return clock > end

    draft = _DRAFT._replace(kind=EXTENDED, key=key, data=json.dumps({"until": clock}))
    return _plan_once(log, fold, draft, stamp, is_later)


def plan_closing(log: Log, fold: Fold, stamp: Stamp) -> Planned[None]:
    return _plan_once(log, fold, _DRAFT._replace(kind=CLOSED), stamp, lambda fold: not fold.closed)


def plan_clock_repair(log: Log, fold: Fold, to: object, stamp: Stamp) -> Planned[None]:
    """The campaign's clock was carried away: it shows what this host's does, or what the caller says."""
    del log
    definition = fold.definition
    target = stamp.reading(fold, to, fold.clock, field="to")
    if target is None:
        target = max(0.0, stamp.wall - definition.epoch) if definition.is_in_seconds else float(fold.round + 1)
    if target >= fold.clock:
        raise InvalidValue("to", to, "the campaign's clock is not ahead of that: there is nothing to repair")
    behind = stamp.wall - definition.epoch - target if definition.is_in_seconds else fold.round + 1 - target
    if behind > (stamp.tolerance_s if definition.is_in_seconds else 0.0):
        what = f"{duration(behind)} behind this host's clock" if definition.is_in_seconds else "before the last arrival"
        raise InvalidValue("to", to, f"is {what}: give nothing, and it is set to what it must show now")
    draft = _DRAFT._replace(
        kind=CLOCK_SET, sequence=fold.sequence + 1, clock=target, at=stamp.wall, writer=stamp.writer
    )
    return [draft], _no_answer


def plan_expiry(log: Log, fold: Fold, now: object, release: bool | None, stamp: Stamp) -> Planned[int]:
    """Decisions that are too old for an answer to count; how many."""
    draft = stamp.put(_DRAFT._replace(kind=EXPIRED), fold, now, field="now")
    upto, own_upto, expired = overdue(log, fold, draft.own)
    count = sum(many for _, _, many in expired)
    if count == 0:
        return [], lambda _: 0
    releases = fold.problem.paid == "on_answer" if release is None else release
    said = {"upto": upto, "expired": expired, "release": releases}
    if fold.problem.person:
        said["own_upto"] = own_upto
    return [draft._replace(data=json.dumps(said))], lambda _: count


def overdue(log: Log, fold: Fold, now: float) -> tuple[list[int], int, list[tuple[int, float, int]]]:
    """Up to which event each context's decisions have expired, up to which those have that have deadlines of their own,
    and how many expire with it, by context and cost.
    """
    alike: dict[tuple[float, int], list[int]] = {}
    for context, done in enumerate(fold.expiries.upto):
        alike.setdefault((fold.age_limit(context), done), []).append(context)
    upto, expired = list(fold.expiries.upto), list[tuple[int, float, int]]()
    for (limit, done), contexts in alike.items():
        last, found = log.overdue(
            after=done,
            upto=fold.sequence,
            clock=now,
            age_limit=limit,
            repairs=fold.names.repairs,
            contexts=None if len(alike) == 1 else contexts,
        )
        for context in contexts:
            upto[context] = last
        expired += found
    if not fold.problem.person:
        return upto, 0, sorted(expired)
    own_upto, own = _own_overdue(log, fold, now)
    return upto, own_upto, sorted(expired + own)


def _own_overdue(log: Log, fold: Fold, now: float) -> tuple[int, list[tuple[int, float, int]]]:
    """Among those with deadlines of their own."""
    expiries, upto = fold.expiries, fold.sequence
    expired: Counter[tuple[int, float]] = Counter()
    for event in log.own_deadlines(after=expiries.own_upto, upto=fold.sequence):
        if expiries.has(event):
            continue
        if expiries.is_over(event, now, at=fold.sequence + 1):
            expired[known(event.context), known(event.cost)] += 1
        else:
            upto = min(upto, event.sequence - 1)
    return upto, [(context, cost, count) for (context, cost), count in expired.items()]


def _plan_once(log: Log, fold: Fold, draft: Event, stamp: Stamp, is_needed: Callable[[Fold], bool]) -> Planned[None]:
    """The change, unless it was made before under the same key."""
    if is_granted(log, fold, draft):
        return [], _no_answer
    if is_needed(fold):
        return [stamp.put(draft, fold)], _no_answer
    return ([] if draft.key is None else [stamp.put(note_of(draft), fold)]), _no_answer


def _no_answer(events: Sequence[Event]) -> None:
    """There is nothing to tell."""
    del events
