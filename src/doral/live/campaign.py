"""`Campaign`: what people call. Each method checks its input, plans the events, and hands both to the session."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from doral import _check
from doral.errors import InvalidValue, UnknownName
from doral.live.batches import (
    Plan,
    find_subject,
    overdue,
    plan_answers,
    plan_decision,
    plan_decisions,
    refuse_closed,
    stamped,
    view,
)
from doral.live.decision import Decision, make_decision, read_id
from doral.live.errors import KeyReused
from doral.live.events import (
    ANSWER_SCOPE,
    ARM_ADDED,
    ARM_PAUSED,
    ARM_RESUMED,
    ARM_RETIRED,
    CANCELLED,
    CHANGE_SCOPE,
    CLOSED,
    CORRECTED,
    EXPIRED,
    EXTENDED,
    PENDING,
    STATE_NAMES,
    TOPPED_UP,
    Event,
)
from doral.live.export import write_decisions
from doral.live.fold import ARM_IS_PAUSED, ARM_IS_RETIRED, ARM_ON, Fold
from doral.live.ledger import Ledger
from doral.live.planning import Subject, check_same, plan_cancellation, plan_correction
from doral.live.report import Report, make_report
from doral.live.requests import Answer, Arrival, answer_of, arrival_of, as_batch, make_answer, make_arrival, scoped_key
from doral.live.session import Session
from doral.live.storage.base import Log
from doral.problem import MAX_HORIZON, Arm

PAGE_DECISIONS = 1_000


class Campaign:
    """A running allocation. Made by `store.create`, opened by `store.campaign`; safe to share between threads."""

    def __init__(self, session: Session) -> None:
        self._session = session

    @property
    def name(self) -> str:
        return self._session.row.name

    def __repr__(self) -> str:
        return f"<Campaign {self.name!r}>"

    # --- decisions --------------------------------------------------------------------------------------------------

    def decide(
        self, context: str, available: Iterable[str] | None = None, key: str | None = None, at: object = None
    ) -> Decision:
        """An arrival: an arm, or a reasoned skip. The cost is reserved, and all is stored before this returns.

        `available` names the arms that can be had now (None: all). The same `key` gives the same decision back. `at` is
        a timestamp for back-fill; without it, now.
        """
        arrival = make_arrival(context, available, key, at)
        session = self._session
        decision: Decision = session.write(lambda log, fold: plan_decision(log, fold, arrival, session.writer))
        return decision

    def decide_many(self, arrivals: Iterable[str | Mapping[str, Any]]) -> list[Decision]:
        """Many arrivals in their order, stored together or not at all.

        Each is a context, or a mapping with the arguments of `decide`.
        """
        return self._decide([arrival_of(one) for one in as_batch("arrivals", arrivals)])

    def _decide(self, arrivals: list[Arrival]) -> list[Decision]:
        def plan(log: Log, fold: Fold) -> Plan:
            return plan_decisions(log, fold, arrivals, self._session.writer)

        return self._session.write(plan) if arrivals else []

    # --- answers ----------------------------------------------------------------------------------------------------

    def feedback(
        self,
        decision_id: str,
        reward: float,
        key: str | None = None,
        actual_cost: float | None = None,
        at: object = None,
    ) -> Decision:
        """The answer to a decision; zero is an answer. Saying the same twice counts once.

        `actual_cost`, at most what was reserved, gives the rest back to the budget.
        """
        return self._answer([make_answer(decision_id, reward, key, actual_cost, at)])[0]

    def feedback_many(self, answers: Iterable[tuple[str, float] | Mapping[str, Any]]) -> list[Decision]:
        """Many answers in their order, stored together or not at all.

        Each is a pair (decision_id, reward), or a mapping with the arguments of `feedback`.
        """
        return self._answer([answer_of(one) for one in as_batch("answers", answers)])

    def _answer(self, answers: list[Answer]) -> list[Decision]:
        def plan(log: Log, fold: Fold) -> Plan:
            return plan_answers(log, fold, answers, self._session.writer)

        return self._session.write(plan) if answers else []

    def correct(
        self,
        decision_id: str,
        reward: float,
        key: str | None = None,
        actual_cost: float | None = None,
        at: object = None,
    ) -> Decision:
        """A later, better value for an answer that was given: it takes the place of the earlier one."""
        asked = make_answer(decision_id, reward, key, actual_cost, at)

        def draft(subject: Subject) -> Event | None:
            return plan_correction(subject, reward=asked.reward, actual_cost=asked.actual_cost, key=asked.key)

        return self._change_decision(asked.decision_id, CORRECTED, draft, key=asked.key, reward=asked.reward, at=at)

    def cancel(self, decision_id: str, key: str | None = None, at: object = None) -> Decision:
        """The decision was not carried out: its budget comes back, and it is forgotten as far as possible."""
        scoped = scoped_key(ANSWER_SCOPE, key)
        return self._change_decision(
            decision_id,
            CANCELLED,
            lambda subject: plan_cancellation(subject, key=scoped),
            key=scoped,
            reward=None,
            at=at,
        )

    def _change_decision(
        self,
        decision_id: str,
        kind: int,
        draft: Callable[[Subject], Event | None],
        *,
        key: str | None,
        reward: float | None,
        at: object,
    ) -> Decision:
        def plan(log: Log, fold: Fold) -> Plan:
            sequence = read_id(fold.names.tag, decision_id)
            subject = find_subject(log, fold, sequence)
            known = log.by_keys([key]).get(key) if key is not None else None
            event = None
            if known is not None:
                check_same(known, kind, sequence, reward)
            else:
                event = draft(subject)
            if event is not None:
                event = stamped(event, fold, self._session.writer, at)
                event = fold.apply(event)
                subject.outcomes.append(event)
            return ([] if event is None else [event]), lambda: view(subject)

        return self._session.write(plan)

    def expire(self, now: object = None) -> int:
        """Decisions that are too old for an answer to count become `expired`; returns how many."""

        def plan(log: Log, fold: Fold) -> Plan:
            event = stamped(Event(0, EXPIRED, 0.0, 0.0, 0), fold, self._session.writer, now)
            upto, by_arm = overdue(log, fold, event.clock)
            count = sum(many for _, many in by_arm)
            if count == 0:
                return [], lambda: 0
            event = event._replace(data=json.dumps({"upto": upto, "by_arm": by_arm}))
            fold.apply(event)
            return [event], lambda: count

        return int(self._session.write(plan))

    # --- changes while it runs --------------------------------------------------------------------------------------

    def add_arm(self, arm: Arm, key: str | None = None) -> None:
        """A new arm, about which nothing is known. It joins a race that still runs; later it is accepted at once."""
        if not isinstance(arm, Arm):
            raise InvalidValue("arm", arm, "must be an Arm; write Arm(name, features=[...])")

        def check(fold: Fold) -> bool:
            if arm in fold.problem.arms:
                return False
            _check.no_duplicates("name of an arm", (*fold.problem.arm_names, arm.name))
            if len(arm.features) != fold.problem.n_features:
                remedy = f"must be {fold.problem.n_features}, as for the other arms"
                raise InvalidValue(f"number of features of arm {arm.name!r}", len(arm.features), remedy)
            return True

        data = {"name": arm.name, "features": list(arm.features), "cost": arm.cost}
        self._change(Event(0, ARM_ADDED, 0.0, 0.0, 0, data=json.dumps(data)), key, check)

    def pause_arm(self, name: str) -> None:
        """Stop offering an arm until `resume_arm`."""
        self._change_arm(name, ARM_PAUSED, ARM_IS_PAUSED)

    def resume_arm(self, name: str) -> None:
        """Offer a paused arm again."""
        self._change_arm(name, ARM_RESUMED, ARM_ON)

    def retire_arm(self, name: str) -> None:
        """Stop offering an arm for good. Answers to it are still taken."""
        self._change_arm(name, ARM_RETIRED, ARM_IS_RETIRED)

    def _change_arm(self, name: str, kind: int, status: int) -> None:
        def plan(log: Log, fold: Fold) -> Plan:
            arm = fold.problem.arm_index(name)
            refuse_closed(fold)
            if fold.arm_status[arm] == status:
                return [], lambda: None
            if fold.arm_status[arm] == ARM_IS_RETIRED:
                raise InvalidValue("arm", name, "is retired, for good; add it under a new name")
            event = stamped(Event(0, kind, 0.0, 0.0, 0, arm=arm), fold, self._session.writer, None)
            fold.apply(event)
            return [event], lambda: None

        self._session.write(plan)

    def top_up(self, amount: float, key: str | None = None) -> None:
        """More budget. Give a key: a repeated request then adds it once."""
        amount = _check.finite_number("amount", amount, above=0)
        self._change(Event(0, TOPPED_UP, 0.0, 0.0, 0, value=amount), key)

    def extend(self, rounds: int, key: str | None = None) -> None:
        """More arrivals are expected. Give a key: a repeated request then adds them once."""
        rounds = _check.whole_number("rounds", rounds, at_least=1, at_most=MAX_HORIZON)
        self._change(Event(0, EXTENDED, 0.0, 0.0, 0, data=json.dumps({"rounds": rounds})), key)

    def close(self) -> None:
        """End the campaign: no more decisions. Answers to open ones are still taken."""

        def check(fold: Fold) -> bool:
            return not fold.closed

        self._change(Event(0, CLOSED, 0.0, 0.0, 0), None, check, when_closed=True)

    def _change(
        self, draft: Event, key: str | None, check: Callable[[Fold], bool] | None = None, *, when_closed: bool = False
    ) -> None:
        scoped = scoped_key(CHANGE_SCOPE, key)

        def plan(log: Log, fold: Fold) -> Plan:
            known = log.by_keys([scoped]).get(scoped) if scoped is not None else None
            if known is not None:
                if (known.kind, known.value, known.data) != (draft.kind, draft.value, draft.data):
                    raise KeyReused(
                        f"key = {key!r}: was used before with another content; make a new key for each request"
                    )
                return [], lambda: None
            if not when_closed:
                refuse_closed(fold)
            if check is not None and not check(fold):
                return [], lambda: None
            event = stamped(draft._replace(key=scoped), fold, self._session.writer, None)
            fold.apply(event)
            return [event], lambda: None

        self._session.write(plan)

    # --- looking ----------------------------------------------------------------------------------------------------

    def decision(self, decision_id: str) -> Decision:
        """One decision as it stands."""
        return self._session.read(lambda log, fold: view(find_subject(log, fold, read_id(fold.names.tag, decision_id))))

    def decisions(self, state: str | None = None) -> Iterator[Decision]:
        """All decisions in their order, or those in one state; read page by page, never all at once."""
        if state is not None and state not in STATE_NAMES:
            raise UnknownName("state", state, STATE_NAMES)
        after = 0
        if state == STATE_NAMES[PENDING]:
            after = self._session.read(lambda _, fold: min(fold.expired_upto))
        return self._pages(state, after)

    def _pages(self, state: str | None, after: int) -> Iterator[Decision]:
        def page(log: Log, fold: Fold) -> tuple[int, list[Decision]]:
            decided = log.decided_after(after, upto=fold.sequence, limit=PAGE_DECISIONS)
            if not decided:
                return after, []
            about = log.about_range(decided[0].sequence, decided[-1].sequence)
            made = [
                make_decision(fold.names, event, about.get(event.sequence, ()), fold.expired_upto) for event in decided
            ]
            return decided[-1].sequence, made

        while True:
            last, made = self._session.read(page)
            if not made:
                return
            for one in made:
                if state is None or one.state == state:
                    yield one
            after = last

    def ledger(self) -> Ledger:
        """Where the budget is: spent + reserved + left = total, exactly."""
        return self._session.read(lambda _, fold: fold.book.view())

    def report(self) -> Report:
        """Spend, pace, pending, return curves, cut-off and values: the campaign at a glance."""
        return self._session.read(lambda _, fold: make_report(self.name, fold))

    def export(self, path: str | Path) -> int:
        """Every decision into a .parquet or .csv file, whole or not at all; returns how many."""
        return write_decisions(Path(path), self.decisions())

    def save_snapshot(self) -> None:
        """Write a snapshot now, so that the next opening is quick. Happens by itself now and then."""
        self._session.save()
