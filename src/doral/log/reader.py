"""One table on its way to a log, step by step; every step says what it assumed and what it left out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from doral._arrays import Flags, Floats
from doral.errors import InvalidValue, shown
from doral.log.arms import Done, arms_of
from doral.log.cleaning import Sieve, drop_duplicates, isolated_times, ranked
from doral.log.clock import SECONDS, Clock, Unit
from doral.log.columns import Roles
from doral.log.costs import costs_of
from doral.log.log import Log, Reading
from doral.log.outcomes import Outcomes, match_answers
from doral.log.source import SOURCE, Opened, readable
from doral.log.strata import MAX_STRATA, Strata, stratify
from doral.log.times import YEAR_US, Instants, no_times, times_of
from doral.log.values import Rewards, numbers_of, rewards_of, text_of
from doral.log.waits import Waits, observe, waits_of
from doral.problem import Feedback

if TYPE_CHECKING:
    import polars as pl

_SAMPLED = 10_000  # rows: enough to see whether a column numbers them
_OPEN = ("pending",)  # states of an exported decision of which it is not known yet what is paid


class Reader:
    """One table on its way to a log."""

    def __init__(self, opened: Opened, roles: Roles, units: Mapping[str, str], max_rows: int) -> None:
        with readable(opened.name):
            frame = opened.load(max_rows + 1)
        if frame.height > max_rows:
            raise InvalidValue(SOURCE, opened.name, f"has more than {max_rows:,} rows; take a part of it, or max_rows=")
        self.frame, self.opened, self.roles = frame, opened, roles
        self.units = {**roles.units, **units}
        self._unit_by_name = None if "time" in units else roles.units.get("time")
        self.sieve = Sieve(frame.height, opened.name)
        self.notes: list[str] = []
        self._has_key = True

    def column(self, role: str) -> pl.Series | None:
        name = self.roles.get(role)
        return None if name is None else self.frame[name]

    def log(
        self, words: Mapping[str, list[str] | None], feedback: Feedback | None, strata: Strata, until: object
    ) -> Log:
        sieve = self.sieve
        sieve.require_rows()
        is_pending = self._states()
        self._one_run()
        times = self._times()
        done = self._arms(words, times)
        waits = waits_of(
            sieve,
            self.column("answered"),
            self.column("delay"),
            times,
            self.units.get("delay"),
            is_measured=self.roles.is_export or self.roles.is_simulated,
        )
        self.notes += waits.notes
        rewards = self._rewards(words["positive"] or ())
        outcomes, watched = self._outcomes(times, waits, rewards, feedback, until)
        probability = self._probabilities()
        costs = costs_of(
            sieve,
            None if (cost := self.column("cost")) is None else numbers_of(cost, role="cost"),
            None if (paid := self.column("paid")) is None else numbers_of(paid, role="paid"),
            arm=done.codes,
            is_answered=np.isfinite(outcomes.delay),
            is_pending=is_pending,
        )
        self.notes += costs.notes
        sieve.require_rows()
        places = np.flatnonzero(sieve.kept)
        places = places[np.argsort(times.value[places], kind="stable")]
        arm_names, arm = ranked(done.codes[places], done.names)
        if not arm_names:
            remedy = "nothing was done in any row that is left; name another column with arm="
            raise InvalidValue("arm", self.roles.columns["arm"], remedy)
        if n_idle := int((arm < 0).sum()):
            n_heard = int(((arm < 0) & np.isfinite(outcomes.delay[places])).sum())
            told = f"{n_heard:,} answers of theirs are what doing nothing brings" if n_heard else "none has an answer"
            self.notes.append(f"In {n_idle:,} rows nothing was done (no arm); {told}.")
        outcome = outcomes.reward[places]
        if outcomes.feedback == "silent":
            outcome = np.nan_to_num(outcome)
        stratified = stratify(
            [self.frame[name].gather(places) for name in self.roles.context],
            strata=strata,
            arm=arm,
            value=outcome,
            is_valued=~np.isnan(outcome),
            is_classes=self.roles.is_export or self.roles.is_simulated,
        )
        self.notes += stratified.notes
        contexts, context = ranked(stratified.codes, stratified.names)
        time = (times.value[places] - times.value[places[0]]) / times.per_unit
        delay = outcomes.delay[places]
        keys = self.column("key") if self._has_key else None
        return Log(
            name=self.opened.name,
            arms=arm_names,
            contexts=contexts,
            clock=self._clock(times, time, delay),
            start=_moment(times.value[places[0]]) if times.kind == "world" else None,
            time=time,
            context=context,
            arm=arm,
            reward=outcomes.reward[places],
            delay=delay,
            watched=watched[places],
            cost=costs.cost[places],
            paid=costs.paid[places],
            probability=probability[places],
            feedback=outcomes.feedback,
            paid_when=costs.paid_when,
            has_delays=outcomes.has_delays,
            key=() if keys is None else tuple(text_of(keys).fill_null("")[places].to_list()),
            reading=self._reading(),
        )

    def _states(self) -> Flags:
        """Of an exported campaign: cancelled decisions are none, and of open ones it is not known what is paid."""
        if not self.roles.is_export:
            return np.zeros(self.frame.height, dtype=bool)
        state = text_of(self.frame["state"])
        self.notes.append("The file is an exported campaign.")
        self.sieve.drop((state == "cancelled").fill_null(value=False).to_numpy(), "were cancelled: no decisions")
        return state.is_in(list(_OPEN)).fill_null(value=False).to_numpy()

    def _one_run(self) -> None:
        if self.roles.is_simulated:
            runs = self.frame.select("scenario", "policy", "run").n_unique()
            if runs > 1:
                remedy = "filter the frame: one scenario, one policy and one run are a log"
                raise InvalidValue("runs in the frame", runs, remedy)

    def _counts_rounds(self, time: pl.Series) -> bool:
        """Whether the clock of a simulation is the number of the arrival."""
        return self.roles.is_simulated and bool((time == self.frame["round"]).all())

    def _times(self) -> Instants:
        column, sieve = self.column("time"), self.sieve
        has_time = column is not None
        if column is None:
            times = no_times(self.frame.height)
        else:
            is_rounds = self.units.get("time") == "rounds" or self.roles.is_export or self._counts_rounds(column)
            times = times_of(
                column, role="time", unit=self.units.get("time"), is_rounds=is_rounds and not _is_epoch(column)
            )
            text = text_of(column)
            sieve.drop(times.is_bad, "have a time that cannot be read", lambda row: text[row])
            sieve.drop(~np.isfinite(times.value), "have no time")
            sieve.require_rows()
        key = self.roles.get("key")
        self.notes += drop_duplicates(
            sieve,
            self.frame,
            key=key,
            key_is_of_people=self.roles.key_is_of_people,
            time=times.value if has_time else None,
            content=[name for role, name in self.roles.listed() if role not in ("time", "answered", "delay", "key")],
        )
        if key is not None and self.roles.key_is_of_people:
            self._has_key = not self.frame[key].is_duplicated().any()
        if times.kind == "world" and column is not None and not self.roles.is_export:  # those were measured
            off = isolated_times(times.value, sieve.kept, at_least=YEAR_US)
            sieve.drop(
                off, "have a time that lies apart from all others by more than these last", lambda row: column[row]
            )
        self.notes += times.notes
        if column is not None and times.kind == "seconds" and self._unit_by_name is not None:
            self.notes.append(
                f"Times in column {shown(column.name)} are taken to be {self._unit_by_name}, by its name."
            )
        sieve.require_rows()
        if has_time and times.is_days:
            self.notes.append("Times of arrival are days: delays are whole days where answers are, 0 for the same day.")
        return times

    def _arms(self, words: Mapping[str, list[str] | None], times: Instants) -> Done:
        column = self.column("arm")
        assert column is not None
        done = arms_of(column, self.sieve, nothing=words["nothing"], arms=words["arms"])
        self.notes += done.notes
        self.sieve.require_rows()
        return done

    def _rewards(self, positive: Sequence[str]) -> Rewards | None:
        column = self.column("reward")
        if column is None:
            return None
        rewards = rewards_of(column, positive=positive)
        if rewards.is_bad.any():
            text = text_of(column)
            self.sieve.drop(
                rewards.is_bad, "have a reward that is neither a number nor yes or no", lambda row: text[row]
            )
        if rewards.note:
            self.notes.append(rewards.note)
        self.sieve.require_rows()
        return rewards

    def _outcomes(
        self, times: Instants, waits: Waits, rewards: Rewards | None, feedback: Feedback | None, until: object
    ) -> tuple[Outcomes, Floats]:
        sieve = self.sieve
        watched, is_late, notes = observe(sieve, waits, times, self.column("observed_until"), until)
        self.notes += notes
        delay = None if waits.delay is None else np.where(is_late, np.inf, waits.delay)
        outcomes = match_answers(
            sieve,
            None if rewards is None else np.where(is_late, np.nan, rewards.value),
            delay,
            is_late=is_late,
            is_never=waits.is_never,
            feedback=feedback,
        )
        self.notes += outcomes.notes
        sieve.require_rows()
        return outcomes, watched

    def _probabilities(self) -> Floats:
        column = self.column("probability")
        if column is None:
            return np.full(self.frame.height, np.nan)
        numbers = numbers_of(column, role="probability")
        value = numbers.value
        above = np.flatnonzero(self.sieve.kept & (value > 1.0 + 1e-9))
        if above.size:
            remedy = f"in row {above[0] + 1:,} of column {shown(column.name)}: must be at most 1; are they per cent? probability=False leaves them out"  # noqa: E501
            raise InvalidValue("probability", float(value[above[0]]), remedy)
        text = text_of(column)
        why = "have a probability that what was done cannot have"
        self.sieve.drop(numbers.is_bad | (value <= 0.0), why, lambda row: text[row])
        return np.minimum(value, 1.0)

    def _clock(self, times: Instants, time: Floats, delay: Floats) -> Clock:
        if times.kind == "rounds":
            return Clock("rounds", "rounds")
        if times.kind == "units":
            return Clock("units", "units")
        waited = delay[np.isfinite(delay) & (delay > 0.0)]
        typical = float(np.median(waited)) if waited.size else float(time[-1])
        sizes: tuple[Unit, ...] = ("days", "hours", "minutes")
        told: Unit = next((one for one in sizes if typical >= 2.0 * SECONDS[one]), "seconds")
        if times.is_days:
            told = "days"
        self.notes.append(f"Durations are told in {told}.")
        return Clock("seconds", told)

    def _reading(self) -> Reading:
        unused = () if self.roles.is_export or self.roles.is_simulated else self.roles.unused
        if unused and not self.roles.context:
            # What tells people apart has few levels; what numbers them has as many as there are rows.
            few = next((name for name in unused if _has_few_levels(self.frame[name])), None)
            example = "" if few is None else f", such as {few!r}"
            self.notes.append(f"There is no context; columns can be named with context={example}.")
        return Reading(
            rows=self.frame.height,
            columns=self.roles.listed(),
            guessed=self.roles.guessed,
            notes=tuple(dict.fromkeys([*self.opened.notes, *self.notes])),
            dropped=tuple(self.sieve.dropped),
            unused=unused,
            source=self.opened.name,
        )


def _is_epoch(column: pl.Series) -> bool:
    return times_of(column, role="time", unit=None).kind == "world"


def _has_few_levels(column: pl.Series) -> bool:
    import polars as pl

    is_plain = column.dtype.is_integer() or column.dtype in (pl.String, pl.Boolean, pl.Categorical, pl.Enum)
    return is_plain and column.head(_SAMPLED).n_unique() <= MAX_STRATA


def _moment(micro: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(micro))
