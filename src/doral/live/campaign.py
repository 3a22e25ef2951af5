"""`Campaign`: what people call. Each method checks its input and has the session write what its plan drafts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from doral import _check
from doral.errors import DoralError, InvalidValue, UnknownName
from doral.live.archive import Archive, archive, archives, relocate
from doral.live.decision import Decision, read_id
from doral.live.decision_pages import DecisionPage, find_by_key, read_page
from doral.live.ends import end_timestamp
from doral.live.events import (
    ANSWER_SCOPE,
    ARM_PAUSED,
    ARM_RESUMED,
    ARM_RETIRED,
    CHANGE_SCOPE,
    IS_PENDING,
    STATE_NAMES,
)
from doral.live.export import write_decisions
from doral.live.fold import Fold
from doral.live.health import Health, examine
from doral.live.ledger import Ledger
from doral.live.page.facts import CampaignFacts
from doral.live.page.file import page_path, write_page
from doral.live.page.page import page
from doral.live.page.watch import Watch
from doral.live.plan_amendments import plan_cancellation, plan_correction
from doral.live.plan_answers import plan_answer, plan_answers
from doral.live.plan_changes import (
    plan_arm_status,
    plan_clock_repair,
    plan_closing,
    plan_expiry,
    plan_extension,
    plan_later_end,
    plan_new_arm,
    plan_top_up,
)
from doral.live.plan_decisions import plan_decision, plan_decisions
from doral.live.plan_forgetting import plan_forgetting
from doral.live.plan_records import plan_records
from doral.live.report import Report, make_report
from doral.live.requests import (
    CancelRequest,
    answer_of,
    arrival_of,
    as_batch,
    make_answer,
    make_arrival,
    make_record,
    record_of,
    scoped_key,
    top_up_amount,
)
from doral.live.served import ServedTables
from doral.live.session import Session
from doral.live.shown_campaign import campaign_card, campaign_repr
from doral.live.storage.contract import Log
from doral.live.subject import Subject
from doral.live.tally import Tally
from doral.live.together import answer as ask_answer
from doral.live.together import decision as ask_decision
from doral.live.together import each, store_each
from doral.live.verify import Verification, Verifier
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
        return self._session.read(lambda _, fold: fold.problem)

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
        return self._session.write(plan_decision, asked)

    def decide_many(self, arrivals: Iterable[str | Mapping[str, Any]]) -> list[Decision]:
        """Many arrivals in their order, stored together or not at all.

        Args:
            arrivals: Each is the name of a context, or a mapping with the arguments of `decide`; at most 100,000.
        """
        asked = [arrival_of(one) for one in as_batch("arrivals", arrivals)]
        return self._session.write(plan_decisions, asked) if asked else []

    def decide_each(self, arrivals: Iterable[str | Mapping[str, Any]]) -> list[Decision | DoralError]:
        """Many arrivals in their order, stored together; what is wrong with one does not keep the others out.

        The result of an arrival that is refused is the error that `decide` would have raised. All others are decided as
        if they had come one after the other.

        Args:
            arrivals: As for `decide_many`.
        """
        return store_each(self._session, each(ask_decision, as_batch("arrivals", arrivals)))

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
        return self._session.write(plan_answer, make_answer(decision_id, reward, key, actual_cost, at))

    def feedback_many(self, answers: Iterable[tuple[str, float] | Mapping[str, Any]]) -> list[Decision]:
        """Many answers in their order, stored together or not at all.

        Args:
            answers: Each is a pair (decision_id, reward), or a mapping with the arguments of `feedback`; at most
                100,000.
        """
        asked = [answer_of(one) for one in as_batch("answers", answers)]
        return self._session.write(plan_answers, asked) if asked else []

    def feedback_each(self, answers: Iterable[tuple[str, float] | Mapping[str, Any]]) -> list[Decision | DoralError]:
        """Many answers in their order, stored together; what is wrong with one does not keep the others out.

        The result of an answer that is refused is the error that `feedback` would have raised.

        Args:
            answers: As for `feedback_many`.
        """
        return store_each(self._session, each(ask_answer, as_batch("answers", answers)))

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
        return self._session.write(plan_correction, make_answer(decision_id, reward, key, actual_cost, at))

    def cancel(self, decision_id: str, key: str | None = None, at: object = None) -> Decision:
        """The decision was not carried out: its budget comes back, and it is forgotten as far as possible.

        Args:
            decision_id: The `id` of the decision.
            key: A name of this very request: the same key with the same content counts once.
            at: When that became known, for back-fill, as for `decide`; None: now.
        """
        return self._session.write(plan_cancellation, CancelRequest(decision_id, scoped_key(ANSWER_SCOPE, key), at))

    def expire(self, now: object = None, release: bool | None = None) -> int:
        """Decisions that are too old for an answer to count become `expired`; returns how many.

        Args:
            now: By what time they are judged, as `at` of `decide`; None: now.
            release: False: what was reserved for them is spent. True: it comes back, for offers that cost nothing
                unless used. None: it comes back where the problem says that costs are paid "on_answer".
        """
        if release is not None and not isinstance(release, bool):
            raise InvalidValue("release", release, "must be True or False")
        return self._session.write(plan_expiry, now, release)

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
        return self._session.write(plan_records, [asked])[0]

    def record_many(self, records: Iterable[Mapping[str, Any]]) -> list[Decision]:
        """Many of them, entered in the order in which they happened, stored together or not at all.

        Args:
            records: Each is a mapping with the arguments of `record`; at most 100,000.
        """
        asked = [record_of(one) for one in as_batch("records", records)]
        return self._session.write(plan_records, asked) if asked else []

    # --- changes while it runs --------------------------------------------------------------------------------------

    def add_arm(self, arm: Arm, key: str | None = None) -> None:
        """A new arm, about which nothing is known. It joins a race that still runs; later it is accepted at once.

        Args:
            arm: With a name that no other has, and as many features as the others.
            key: A name of this very request: a repeated one adds the arm once.
        """
        if not isinstance(arm, Arm):
            raise InvalidValue("arm", arm, "must be an Arm; write Arm(name, features=[...])")
        self._session.write(plan_new_arm, arm, scoped_key(CHANGE_SCOPE, key))

    def pause_arm(self, name: str) -> None:
        """Stop offering an arm until `resume_arm`.

        Args:
            name: Of the arm.
        """
        self._session.write(plan_arm_status, name, ARM_PAUSED)

    def resume_arm(self, name: str) -> None:
        """Offer a paused arm again.

        Args:
            name: Of the arm.
        """
        self._session.write(plan_arm_status, name, ARM_RESUMED)

    def retire_arm(self, name: str) -> None:
        """Stop offering an arm for good. Answers to it are still taken.

        Args:
            name: Of the arm.
        """
        self._session.write(plan_arm_status, name, ARM_RETIRED)

    def top_up(self, amount: float, key: str | None = None) -> None:
        """More budget. Give a key: a repeated request then adds it once.

        Args:
            amount: How much more, in the unit of the budget; above 0.
            key: A name of this very request.
        """
        amount = top_up_amount(amount)
        self._session.write(plan_top_up, amount, scoped_key(CHANGE_SCOPE, key))

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
            self._session.write(plan_later_end, end_timestamp("until", until), own_key)
        else:
            rounds = _check.whole_number("rounds", rounds, at_least=1, at_most=MAX_HORIZON)
            self._session.write(plan_extension, rounds, own_key)

    def repair_clock(self, to: object = None) -> None:
        """Set the campaign's clock back, to this host's or to a timestamp, after a wrong one has carried it away.

        Decisions that seem to have been made later count as made then.

        Args:
            to: What it is to show, as `at` of `decide`; None: what this host's clock shows.
        """
        self._session.write(plan_clock_repair, to)

    def close(self) -> None:
        """End the campaign: no more decisions. Answers to open ones are still taken."""
        self._session.write(plan_closing)

    # --- looking ----------------------------------------------------------------------------------------------------

    def decision(self, decision_id: str) -> Decision:
        """One decision as it stands.

        Args:
            decision_id: Its `id`.
        """

        def look(log: Log, fold: Fold) -> Decision:
            return Subject.find(log, fold, read_id(fold.names.tag, decision_id)).decision()

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
            after = self._session.read(lambda log, fold: max(fold.expiries.all_upto, log.archived))
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
        def page(log: Log, fold: Fold) -> tuple[list[Decision], int]:
            decided = log.decided_after(after, upto=fold.sequence, limit=PAGE_DECISIONS)
            if not decided:
                tally.compare(fold)
                return [], after
            about = log.about_range(decided[0].sequence, decided[-1].sequence)
            return tally.count(fold, decided, about), decided[-1].sequence

        tally = Tally(is_whole=after == 0)
        while True:
            made, after = self._session.read(page)
            if not made:
                return
            yield from (one for one in made if state is None or one.state == state)

    def ledger(self) -> Ledger:
        """Where the budget is: spent + reserved + left = total, exactly."""
        return self._session.read(lambda _, fold: fold.ledger.copy())

    def report(self) -> Report:
        """Spend, pace, pending, return curves, cut-off and values: the campaign at a glance."""

        def served() -> ServedTables:
            return ServedTables(self.problem.person).read(self.decisions())

        return self._session.read(lambda _, fold: make_report(self.name, fold, served))

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

        def look(log: Log, fold: Fold) -> Verification:
            verifier = Verifier()
            log.check_indexes()
            return verifier.found(self._session.fold_anew(log, verifier.hear), in_use=fold)

        return self._session.read(look)

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

    def archive(self, path: str | Path, before: object = None) -> int:
        """Move old, finished decisions to a new .parquet file; returns how many events, 0 where none can go.

        All that happened up to the first decision that is still open moves, or that happened `before` a time. Reports
        and new decisions do without the file; it is read when an old decision or key is asked for.

        Args:
            path: A new file that ends in .parquet.
            before: What happened before this time moves, as `at` of `decide`; None: all that can.
        """
        return archive(self._session, path, before)

    def archives(self) -> list[Archive]:
        """The files that hold old events of this campaign."""
        return archives(self._session)

    def relocate_archive(self, old: str | Path, new: str | Path) -> None:
        """An archive was moved: from now on look for it in its new place.

        Args:
            old: The path as `archives` tells it.
            new: Where the file is now.
        """
        relocate(self._session, old, new)

    def forget(self, key: str | Iterable[str]) -> int:
        """Erase a key, or several; returns how many events lost theirs. The decisions and the ledger stay.

        With it go the features of those whom its decisions were for, and what these spoke for; what was learned is
        learned anew from the log, as if they had been missing. A forgotten key still answers as used. Asked again, this
        erases whatever traces an interruption has left.

        Args:
            key: The key of a decision or an answer, or several; those that nobody has used are passed over.
        """
        keys = [key] if isinstance(key, str) else as_batch("key", key)
        found = self._session.write(plan_forgetting, [_check.name("key", one) for one in keys])
        self._session.read(lambda log, _: log.wipe(found.keys, people=found.people))
        return found.n_keys
