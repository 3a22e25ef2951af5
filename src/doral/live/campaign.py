"""`Campaign`: what people call. Each method checks its input and hands the session a request."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from doral import _check
from doral.errors import DoralError, InvalidValue, UnknownName
from doral.live.events.event import (
    ANSWER_SCOPE,
    ARM_IS_ACTIVE,
    ARM_IS_PAUSED,
    ARM_IS_RETIRED,
    CHANGE_SCOPE,
    IS_PENDING,
    STATE_NAMES,
)
from doral.live.kinds.answer import Cancel, Cancellation, Correct, GiveAnswer, GiveAnswers, answer_of, make_answer
from doral.live.kinds.change import (
    AddArm,
    ChangeArm,
    Close,
    Extend,
    ExtendUntil,
    Pause,
    RepairClock,
    TopUp,
    top_up_amount,
)
from doral.live.kinds.decide import Decide, DecideMany, arrival_of, make_arrival
from doral.live.kinds.expire import Expire
from doral.live.kinds.forget import Forget
from doral.live.kinds.record import Record, make_record, record_of
from doral.live.kinds.request import Subject, as_batch, scoped_key
from doral.live.page.facts import CampaignFacts
from doral.live.page.file import page_path, write_page
from doral.live.page.page import page
from doral.live.page.watch import Watch
from doral.live.runtime.clock import Stamp, end_timestamp
from doral.live.runtime.group_commit import each, store_each
from doral.live.runtime.replay import LogReader
from doral.live.runtime.session import Session
from doral.live.state.parts import Ledger, read_id
from doral.live.state.state import CampaignState
from doral.live.storage.contract import Log
from doral.live.views.decision import Decision
from doral.live.views.decision_pages import DecisionPage, Tally, find_by_key, read_page
from doral.live.views.export import write_decisions
from doral.live.views.groups import ServedTables
from doral.live.views.health import Health, examine
from doral.live.views.preview import Preview, preview
from doral.live.views.report import Report, campaign_card, campaign_repr, make_report
from doral.live.views.verify import Verification, Verifier, totals_of
from doral.person import FeaturesLike
from doral.problem import MAX_HORIZON, Arm, Problem

PAGE_DECISIONS = 1_000


class Campaign:
    """A running allocation. Made by `store.create`, opened by `store.campaign`; safe to share between threads."""

    def __init__(self, session: Session) -> None:
        """Use `store.create` or `store.campaign` instead.

        Args:
            session: A connection to its log.
        """
        self._session = session
        self._watch = Watch(session)

    @property
    def session(self) -> Session:
        """For those who make another view of the same campaign."""
        return self._session

    @property
    def name(self) -> str:
        """As it was created with."""
        return self._session.row.name

    @property
    def problem(self) -> Problem:
        """As it is now, with the arms that were added."""
        return self._session.read(lambda _, now: now.problem)

    @property
    def is_gone(self) -> bool:
        """Whether the campaign was found to have been deleted."""
        return self._session.is_gone

    def __repr__(self) -> str:
        return campaign_repr(self._session)

    def _repr_html_(self) -> str:
        return campaign_card(self)

    # --- decisions --------------------------------------------------------------------------------------------------

    def decide(
        self,
        context: str | None = None,
        available: Iterable[str] | None = None,
        key: str | None = None,
        at: object = None,
        *,
        features: FeaturesLike | None = None,
        weight: float | None = None,
        deadline: float | None = None,
    ) -> Decision:
        """An arrival: an arm, or a reasoned skip. The cost is reserved, and all is stored before this returns.

        Args:
            context: The name of the context it is in; may be left out where there is only one.
            available: Names of the arms that can be had now; None: all.
            key: A name of this very request, of your choice: the same key gives the same decision back.
            at: When it came, for back-fill: seconds since 1970 or a datetime with its time zone (a number of rounds
                where the clock counts those); None: now.
            features: What is known of this one, where the problem says what is known of people (`person`): a mapping,
                or values in the order of the problem.
            weight: What a unit of this one's reward is worth, if not as in the context; with `person` only.
            deadline: How long this one's answer counts, in seconds (in rounds where the clock counts those), if not as
                in the context; with `person` only.
        """
        asked = make_arrival(context, available, key, at, features=features, weight=weight, deadline=deadline)
        return self._session.write(Decide(asked))

    def preview(
        self,
        context: str | None = None,
        available: Iterable[str] | None = None,
        at: object = None,
        *,
        features: FeaturesLike | None = None,
        weight: float | None = None,
        deadline: float | None = None,
    ) -> Preview:
        """What would be decided for this arrival now, with the values, the price and the reason; nothing is changed.

        If the arrival is the next one, and nothing else happens before, `decide` decides just so.

        Args:
            context: As for `decide`.
            available: As for `decide`.
            at: As for `decide`.
            features: As for `decide`.
            weight: As for `decide`.
            deadline: As for `decide`, in seconds (or rounds).
        """
        asked = make_arrival(context, available, None, at, features=features, weight=weight, deadline=deadline)
        stamp = Stamp(self._session.writer, time.time(), self._session.clock_tolerance_s)
        return self._session.read(lambda log, now: preview(log, now, asked, stamp))

    def decide_many(self, arrivals: Iterable[str | Mapping[str, Any]]) -> list[Decision]:
        """Many arrivals in their order, stored together or not at all.

        Args:
            arrivals: Each is the name of a context, or a mapping with the arguments of `decide`; at most 100,000.
        """
        asked = [arrival_of(one) for one in as_batch("arrivals", arrivals)]
        return self._session.write(DecideMany(asked)) if asked else []

    def decide_each(self, arrivals: Iterable[str | Mapping[str, Any]]) -> list[Decision | DoralError]:
        """Many arrivals in their order, stored together; what is wrong with one does not keep the others out.

        The result of an arrival that is refused is the error that `decide` would have raised. All others are decided as
        if they had come one after the other.

        Args:
            arrivals: As for `decide_many`.
        """
        return store_each(self._session, each(lambda one: Decide(arrival_of(one)), as_batch("arrivals", arrivals)))

    def prepared(self, arrivals: Iterable[Mapping[str, Any]]) -> Sequence[Mapping[str, Any]]:
        """Arguments of `decide` as they are stored: a model of your own adds what it predicts.

        Args:
            arrivals: Each with the arguments of `decide`.
        """
        return as_batch("arrivals", arrivals)

    def refit_if_due(self) -> None:
        """Fit a model of your own anew, where there is one and enough answers have come."""

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

        Args:
            decision_id: The `id` of the decision.
            reward: What came of it, in units of reward.
            key: A name of this very request: the same key with the same content counts once.
            actual_cost: What it cost, at most what was reserved: the rest comes back to the budget. None: all of it, or
                where costs are paid on answer what the problem says.
            at: When the answer came, for back-fill, as for `decide`; None: now.
        """
        return self._session.write(GiveAnswer(make_answer(decision_id, reward, key, actual_cost, at)))

    def feedback_many(self, answers: Iterable[tuple[str, float] | Mapping[str, Any]]) -> list[Decision]:
        """Many answers in their order, stored together or not at all.

        Args:
            answers: Each is a pair (decision_id, reward), or a mapping with the arguments of `feedback`; at most
                100,000.
        """
        asked = [answer_of(one) for one in as_batch("answers", answers)]
        return self._session.write(GiveAnswers(asked)) if asked else []

    def feedback_each(self, answers: Iterable[tuple[str, float] | Mapping[str, Any]]) -> list[Decision | DoralError]:
        """Many answers in their order, stored together; what is wrong with one does not keep the others out.

        The result of an answer that is refused is the error that `feedback` would have raised.

        Args:
            answers: As for `feedback_many`.
        """
        return store_each(self._session, each(lambda one: GiveAnswer(answer_of(one)), as_batch("answers", answers)))

    def correct(
        self,
        decision_id: str,
        reward: float,
        key: str | None = None,
        actual_cost: float | None = None,
        at: object = None,
    ) -> Decision:
        """A later, better value for an answer that was given: it takes the place of the earlier one.

        Args:
            decision_id: The `id` of the decision, which must have been answered.
            reward: What is right, in units of reward.
            key: A name of this very request: the same key with the same content counts once.
            actual_cost: What it cost after all; None: as was said before.
            at: When the correction came, for back-fill, as for `decide`; None: now. The delay stays that of the answer.
        """
        return self._session.write(Correct(make_answer(decision_id, reward, key, actual_cost, at)))

    def cancel(self, decision_id: str, key: str | None = None, at: object = None) -> Decision:
        """The decision was not carried out: its budget comes back, and it is forgotten as far as possible.

        Args:
            decision_id: The `id` of the decision.
            key: A name of this very request: the same key with the same content counts once.
            at: When that became known, for back-fill, as for `decide`; None: now.
        """
        return self._session.write(Cancel(Cancellation(decision_id, scoped_key(ANSWER_SCOPE, key), at)))

    def expire(self, now: object = None, key: str | None = None) -> int:
        """Decisions that are too old for an answer to count become `expired`; returns how many.

        Args:
            now: By what time they are judged, as `at` of `decide`; None: now.
            key: A name of this very request: a repeated one gives the same number.

        What was reserved for them is spent; where the problem says that costs are paid "on_answer", it comes back.
        """
        return self._session.write(Expire(now, scoped_key(CHANGE_SCOPE, key)))

    # --- decisions that were made elsewhere -------------------------------------------------------------------------

    def record(
        self,
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
        features: FeaturesLike | None = None,
        weight: float | None = None,
        deadline: float | None = None,
    ) -> Decision:
        """A decision that was made elsewhere, or before: it teaches the policy as one of its own does.

        Args:
            context: The name of its context; None where there is only one.
            arm: The name of the arm; None for somebody who got nothing.
            at: When it was made, as for `decide`.
            reward: What came of it; None: nothing yet, and an answer may follow by `feedback`.
            answered_at: When the reward came, as `at`.
            cost: What it cost; None: as the arm does.
            probability: With which this arm, or nothing, was chosen; None: nobody knows.
            spend: True: the campaign's budget pays for it, and it is one of the arrivals that are expected. False: it
                costs the campaign nothing and is none of them.
            key: A name of this very request: the same key with the same content counts once.
            features: As for `decide`.
            weight: As for `decide`.
            deadline: As for `decide`, in seconds (or rounds).
        """
        asked = make_record(
            context, arm, at, reward, answered_at, cost, probability, spend, key,
            features=features, weight=weight, deadline=deadline,
        )  # fmt: skip
        return self._session.write(Record([asked]))[0]

    def record_many(self, records: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """Many of them, entered in the order in which they happened, stored together or not at all.

        Args:
            records: Each is a mapping with the arguments of `record`; at most 100,000.
        """
        asked = [record_of(one) for one in as_batch("records", records)]
        return self._session.write(Record(asked)) if asked else []

    # --- changes while it runs --------------------------------------------------------------------------------------

    def add_arm(self, arm: Arm, key: str | None = None) -> None:
        """A new arm, about which nothing is known. It joins a race that still runs; later it is accepted at once.

        Args:
            arm: With a name that no other has, and as many features as the others.
            key: A name of this very request: a repeated one adds the arm once.
        """
        if not isinstance(arm, Arm):
            raise InvalidValue("arm", arm, "must be an Arm; write Arm(name, features=[...])")
        self._session.write(AddArm(arm, scoped_key(CHANGE_SCOPE, key)))

    def pause_arm(self, name: str, key: str | None = None) -> None:
        """Stop offering an arm until `resume_arm`.

        Args:
            name: Of the arm.
            key: A name of this very request: one that comes again, however late, changes nothing.
        """
        self._session.write(ChangeArm(name, ARM_IS_PAUSED, scoped_key(CHANGE_SCOPE, key)))

    def resume_arm(self, name: str, key: str | None = None) -> None:
        """Offer a paused arm again.

        Args:
            name: Of the arm.
            key: A name of this very request: one that comes again, however late, changes nothing.
        """
        self._session.write(ChangeArm(name, ARM_IS_ACTIVE, scoped_key(CHANGE_SCOPE, key)))

    def retire_arm(self, name: str, key: str | None = None) -> None:
        """Stop offering an arm for good. Answers to it are still taken.

        Args:
            name: Of the arm.
            key: A name of this very request: one that comes again, however late, changes nothing.
        """
        self._session.write(ChangeArm(name, ARM_IS_RETIRED, scoped_key(CHANGE_SCOPE, key)))

    def top_up(self, amount: float, key: str | None = None) -> None:
        """More budget. Give a key: a repeated request then adds it once.

        Args:
            amount: How much more, in the unit of the budget; above 0.
            key: A name of this very request.
        """
        amount = top_up_amount(amount)
        self._session.write(TopUp(amount, scoped_key(CHANGE_SCOPE, key)))

    def extend(self, rounds: int | None = None, key: str | None = None, until: object = None) -> None:
        """More arrivals are expected, or the campaign that ends with a date lasts until a later one.

        Give a key: a repeated request then adds them once.

        Args:
            rounds: How many more arrivals; where the end is a number of them.
            key: A name of this very request.
            until: The new end, as for `create`; where the end is a date.
        """
        own_key = scoped_key(CHANGE_SCOPE, key)
        if (rounds is None) == (until is None):
            raise InvalidValue("until", until, f"and rounds = {rounds!r}: give one of them; a key comes with it")
        if until is not None:
            self._session.write(ExtendUntil(end_timestamp("until", until), own_key))
        else:
            rounds = _check.whole_number("rounds", rounds, at_least=1, at_most=MAX_HORIZON)
            self._session.write(Extend(rounds, own_key))

    def repair_clock(self, to: object = None, key: str | None = None) -> None:
        """Set the campaign's clock back, to this host's or to a timestamp, after a wrong one has carried it away.

        Decisions that seem to have been made later count as made then.

        Args:
            to: What it is to show, as `at` of `decide`; None: what this host's clock shows.
            key: A name of this very request: a repeated one sets it once.
        """
        self._session.write(RepairClock(to, scoped_key(CHANGE_SCOPE, key)))

    def pause(self, key: str | None = None) -> None:
        """Skip every arrival until `resume`, with the reason code "paused". Answers are taken as before.

        Args:
            key: A name of this very request: one that comes again, however late, changes nothing.
        """
        self._session.write(Pause(True, scoped_key(CHANGE_SCOPE, key)))

    def resume(self, key: str | None = None) -> None:
        """Decide again after `pause`.

        Args:
            key: A name of this very request: one that comes again, however late, changes nothing.
        """
        self._session.write(Pause(False, scoped_key(CHANGE_SCOPE, key)))

    def close(self, key: str | None = None) -> None:
        """End the campaign: no more decisions. Answers to open ones are still taken.

        Args:
            key: A name of this very request; a campaign that is closed stays so in any case.
        """
        self._session.write(Close(scoped_key(CHANGE_SCOPE, key)))

    # --- looking ----------------------------------------------------------------------------------------------------

    def decision(self, decision_id: str) -> Decision:
        """One decision as it stands.

        Args:
            decision_id: Its `id`.
        """

        def look(log: Log, now: CampaignState) -> Decision:
            return Subject.find(log, now, read_id(now.names.tag, decision_id)).decision()

        return self._session.read(look)

    def decisions(self, state: str | None = None) -> Iterator[Decision]:
        """All decisions in their order, or those in one state; read page by page, never all at once.

        Args:
            state: "skipped", "pending", "returned", "expired", "late" or "cancelled"; None: all.
        """
        if state is not None and not _check.is_among(state, STATE_NAMES):
            raise UnknownName("state", state, STATE_NAMES)
        after = 0
        if state == STATE_NAMES[IS_PENDING]:
            after = self._session.read(lambda _, now: now.expiries.all_upto)
        return self._pages(state, after)

    def decision_page(self, after: str | None = None, state: str | None = None, limit: int = 100) -> DecisionPage:
        """Some decisions in their order, and where the next ones begin: for those who cannot keep an iterator open.

        Args:
            after: What the part before gave as `next`, or the id of a decision; None: from the first on.
            state: As for `decisions`. Where few are in it, a part may hold fewer than asked for, though more follow.
            limit: How many at most; up to 1,000.
        """
        return read_page(self._session, after=after, state=state, limit=limit)

    def decision_with_key(self, key: str) -> Decision | None:
        """The decision that was made, or recorded, with this key; None where there is none.

        Args:
            key: As it was given to `decide` or `record`.
        """
        return find_by_key(self._session, key)

    def _pages(self, state: str | None, after: int) -> Iterator[Decision]:
        def page(log: Log, now: CampaignState) -> tuple[list[Decision], int]:
            decided = log.decided_after(after, upto=now.sequence, limit=PAGE_DECISIONS)
            if not decided:
                tally.compare(now)
                return [], after
            about = log.about_range(decided[0].sequence, decided[-1].sequence)
            return tally.count(now, decided, about), decided[-1].sequence

        tally = Tally(is_whole=after == 0)
        while True:
            made, after = self._session.read(page)
            if not made:
                return
            yield from (one for one in made if state is None or one.state == state)

    def ledger(self) -> Ledger:
        """Where the budget is: spent + reserved + left = total, exactly."""
        return self._session.read(lambda _, now: now.ledger.copy())

    def report(self) -> Report:
        """Spend, pace, pending, return curves, cut-off and values: the campaign at a glance."""

        def served() -> ServedTables:
            return ServedTables(self.problem.person).read(self.decisions())

        return self._session.read(lambda _, now: make_report(self.name, now, served))

    def page(self, path: str | Path | None = None) -> str:
        """The campaign as an HTML page that needs nothing but itself: returned as text, and written if asked.

        It shows spend against pace, reward over time, return curves, arms by context, what is certain, what is pending,
        who is served, and the latest decisions with their reasons. The whole log is read for it, in parts: others may
        go on writing meanwhile.

        Args:
            path: A file ending in .html to write the page to, whole or not at all; None: it is only returned. A page
                of before is replaced; a file that is none is refused.
        """
        file = None if path is None else page_path(path)
        text = page(self.facts())
        if file is not None:
            write_page(file, text)
        return text

    def facts(self) -> CampaignFacts:
        """All that `page` shows, in plain values, for those who show or send it otherwise.

        The log is read once: whoever asks again waits for what is new, and for nothing else.
        """
        return self._watch.facts()

    def verify(self) -> Verification:
        """Read the whole log: is it what was written, and where would this version have decided otherwise?

        BrokenLog where it was damaged. Differences are information: history stays what it is.
        """

        def look(log: Log, reader: LogReader) -> Verification:
            verifier = Verifier()
            log.check_indexes()
            from_beginning = reader.read(log, verifier.visit)
            return verifier.found(from_beginning, in_use=(now, totals_of(reader.read(log))))

        now = self._session.read(lambda _, state: totals_of(state))
        return self._session.read_apart(look)

    def health(self) -> Health:
        """Whether the store can be used, how the clocks stand, and what somebody should look after.

        It never raises for what it reports on: a store that cannot be reached is not well.
        """
        return examine(self._session)

    def export(self, path: str | Path) -> int:
        """Every decision into a .parquet or .csv file, whole or not at all; returns how many.

        Args:
            path: The file; its ending says which of the two it is. One that is there is replaced.
        """
        return write_decisions(path, self.decisions(), self.problem.person)

    def save_snapshot(self) -> None:
        """Write a snapshot now, so that the next opening is quick. Happens by itself now and then."""
        self._session.save()

    # --- keeping ----------------------------------------------------------------------------------------------------

    def forget(self, key: str | Iterable[str], request_key: str | None = None) -> int:
        """Erase a key, or several; returns how many events lost theirs. The decisions and the ledger stay.

        With it go the features of those whom its decisions were for, and what these spoke for; what was learned is
        learned anew from the log, as if they had been missing. A forgotten key still answers as used. Asked again, this
        erases whatever traces an interruption has left.

        Args:
            key: The key of a decision or an answer, or several.
            request_key: A name of this very request: a repeated one gives the same number.
        """
        keys = [_check.name("key", one) for one in ([key] if isinstance(key, str) else as_batch("key", key))]
        found = self._session.write(Forget(keys, scoped_key(CHANGE_SCOPE, request_key)))
        self._session.read(lambda log, _: log.wipe(found.keys, people=found.people))
        return found.n_keys
