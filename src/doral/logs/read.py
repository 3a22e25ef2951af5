"""`read_log`: from a table to a log, and what was assumed on the way."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias, TypedDict

import numpy as np

from doral import _check
from doral._arrays import Flags, Floats
from doral._input_types import FilePath, Frame
from doral.errors import InvalidValue, shown
from doral.logs.arms import Done, arm_of_flags, arms_of, costs_of
from doral.logs.cleaning import Sieve, drop_duplicates, isolated_times, ranked
from doral.logs.clock import SECONDS, Clock, Unit
from doral.logs.columns import Chosen, Roles, currency_in, unit_named
from doral.logs.detection import understand
from doral.logs.log import Assumption, Log, Reading, SeenColumn
from doral.logs.outcomes import Outcomes, Waits, match_answers, observe, waits_of
from doral.logs.source import SOURCE, Opened, open_source, readable
from doral.logs.strata import Strata, checked_strata, stratify
from doral.logs.times import YEAR_US, DateOrder, Instants, no_times, order_of, times_of, with_time_of_day
from doral.logs.values import (
    Numbers,
    Rewards,
    currency_of,
    is_yes_or_no,
    numbers_of,
    rewards_of,
    text_of,
    without_missing,
)
from doral.problem import Feedback

if TYPE_CHECKING:
    import polars as pl

MAX_ROWS = 10_000_000
LogSource: TypeAlias = "FilePath | pl.DataFrame | pl.LazyFrame | Frame | Mapping[str, Any]"
AnyLog: TypeAlias = "Log | LogSource"


_DEFAULTS: dict[str, Any] = {"strata": "auto", "max_rows": MAX_ROWS}


class ColumnOptions(TypedDict, total=False):
    """The options of `read_log`, less `name`, where other functions hand them on: a test compares them."""

    time: Chosen
    context: str | Sequence[str] | None
    arm: str | Sequence[str] | None
    reward: Chosen
    answered: Chosen
    delay: Chosen
    cost: Chosen
    paid: Chosen
    probability: Chosen
    observed_until: str | datetime | date | float | None
    key: Chosen
    time_unit: str | None
    delay_unit: str | None
    date_order: DateOrder | None
    feedback: Feedback | None
    positive: str | Sequence[str] | None
    nothing: str | Sequence[str] | None
    arms: Sequence[str] | None
    strata: Strata
    max_rows: int
    currency: str | None
    outcome: str | None


class ReadOptions(ColumnOptions, total=False):
    """The options of `read_log`."""

    name: str | None


def read_log(
    source: LogSource,
    *,
    time: Chosen = None,
    context: str | Sequence[str] | None = None,
    arm: str | Sequence[str] | None = None,
    reward: Chosen = None,
    answered: Chosen = None,
    delay: Chosen = None,
    cost: Chosen = None,
    paid: Chosen = None,
    probability: Chosen = None,
    observed_until: str | datetime | date | float | None = None,
    key: Chosen = None,
    time_unit: str | None = None,
    delay_unit: str | None = None,
    date_order: DateOrder | None = None,
    feedback: Feedback | None = None,
    positive: str | Sequence[str] | None = None,
    nothing: str | Sequence[str] | None = None,
    arms: Sequence[str] | None = None,
    strata: Strata = "auto",
    max_rows: int = MAX_ROWS,
    currency: str | None = None,
    outcome: str | None = None,
    name: str | None = None,
) -> Log:
    """Read a log from a CSV or Parquet file, a data frame, an Arrow table, or a mapping of columns.

    Columns that are not named are understood from their names and data where these leave no doubt; False says that
    there is none. Otherwise `UnclearColumns` says what is ambiguous, what each column holds, and the call to make.
    What was assumed and left out is in `log.reading`; `print(log.reading.text())` tells it.

    Args:
        source: A path, a frame, or a mapping from names to columns: one row for everybody who arrived.
        time: The column of when they came: dates, or numbers in `time_unit`.
        context: The column, or several, that tell people apart before the decision; [] for none.
        arm: The column of what was done; or several, one of each arm, of which at most one is 1 in a row.
        reward: The column of what came of it.
        answered: The column of when the answer came, or of whether it did.
        delay: The column of how long the answer took, in `delay_unit`.
        cost: The column of the list price of what was done.
        paid: The column of what was paid in the end.
        probability: The column of the probability of what was done.
        observed_until: Until when answers would have been seen: a column, or one moment for all.
        key: The column that names a row.
        time_unit: The unit of times that are numbers: "milliseconds", "seconds", "minutes", "hours", "days", "weeks" or
            "rounds".
        delay_unit: The unit of delays that are numbers, likewise.
        date_order: "day-first" or "month-first", where dates such as 03/04/2026 do not show it.
        feedback: "explicit": an answer is seen also when it brings 0; "silent": no news and 0 look the same. None: as
            the table looks.
        positive: Words among the rewards that count as 1.
        nothing: Words among the arms that mean that nothing was done.
        arms: Arms to keep; others are left out. None: all.
        strata: How several context columns become contexts: "auto" crosses those that tell rewards apart, "all" as
            many as rows allow, "as-is" every level that there is, a number at most so many. Default: "auto".
        max_rows: With more rows than these it is refused. Default: ten million.
        currency: What a unit of cost is called in reports, such as "EUR". None: reports speak of units of budget.
        outcome: What a reward of 1 is called in reports, in the singular, such as "booking". None: reports speak of
            rewards.
        name: What the log is called. None: as its file.
    """
    given = {name: value for name, value in locals().items() if name != "source"}
    until_column = observed_until if isinstance(observed_until, str) else None
    arm_columns = [] if arm is None or isinstance(arm, str) else _words("arm", arm) or []
    if len(arm_columns) == 1:
        arm, arm_columns = arm_columns[0], []
    chosen: dict[str, Chosen] = {
        "time": time, "arm": None if arm_columns else arm, "reward": reward, "answered": answered, "delay": delay,  # type: ignore[dict-item]
        "cost": cost, "paid": paid, "probability": probability, "key": key,
    }  # fmt: skip
    for role, value in chosen.items():
        if value is not None and value is not False and not isinstance(value, str):
            raise InvalidValue(role, value, "must be the name of a column, or False for none")
        chosen[role] = False if value == "" else value
    if chosen["arm"] is False:
        raise InvalidValue("arm", arm, "must be the name of a column: without arms there is no log")
    max_rows = _check.whole_number("max_rows", max_rows, at_least=1, at_most=10**9)
    if feedback not in (None, "explicit", "silent"):
        raise InvalidValue("feedback", feedback, "must be 'explicit' or 'silent'")
    if date_order not in (None, "day-first", "month-first"):
        raise InvalidValue("date_order", date_order, "must be 'day-first' or 'month-first'")
    units = {role: unit_named(f"{role}_unit", one) for role, one in (("time", time_unit), ("delay", delay_unit)) if one}
    strata = checked_strata(strata)
    called = None if name is None else _check.name("name", name)
    currency, outcome = _unit_name("currency", currency), _unit_name("outcome", outcome)
    words = {
        "positive": _words("positive", positive),
        "nothing": _words("nothing", nothing),
        "arms": _words("arms", arms),
    }
    with readable(source, is_ours=True):
        opened = open_source(source)
        if called is not None:
            opened = replace(opened, name=called)
        if until_column in opened.names:
            chosen["observed_until"] = until_column
        elif observed_until is not None:
            chosen["observed_until"] = False
        frame = _loaded(opened, max_rows)
        roles, seen = understand(
            frame,
            chosen=chosen,
            arm_columns=arm_columns,
            context=_words("context", context),
            source=str(source) if isinstance(source, str | os.PathLike) else opened.name,
            decimal_comma=opened.has_decimal_comma,
            given={name: value for name, value in given.items() if value != _DEFAULTS.get(name)},
        )
        reader = Reader(frame, opened, roles, seen, units, date_order)
        moment = None if until_column in opened.names else observed_until
        log = reader.log(words, feedback, strata, moment, currency)
    return replace(log, outcome=outcome)


def _loaded(opened: Opened, max_rows: int) -> pl.DataFrame:
    with readable(opened.name):
        frame = opened.load(max_rows + 1)
    if frame.height > max_rows:
        raise InvalidValue(SOURCE, opened.name, f"has more than {max_rows:,} rows; take a part of it, or max_rows=")
    if frame.height == 0:
        raise InvalidValue(SOURCE, opened.name, "there are no rows")
    return frame


def _unit_name(field: str, value: object) -> str | None:
    return None if value is None else _check.name(field, value)


def _words(field: str, value: object) -> list[str] | None:
    if value is None:
        return None
    given = [value] if isinstance(value, str) else _check.items(field, value, what="words", at_most=100_000, at_least=0)
    for one in given:
        if not isinstance(one, str):
            raise InvalidValue(field, one, "must be a word, or a list of words")
    return given


def as_log(log: Any, columns: Mapping[str, Any]) -> Log:
    """Return a log that was read already, or what `read_log` makes of it with these options.

    Of a log that was read already, `currency` and `outcome` can still be set.
    """
    if not isinstance(log, Log):
        return read_log(log, **columns)
    if rest := sorted(set(columns) - {"currency", "outcome"}):
        raise InvalidValue("columns", rest, "are for files and frames: this log was read already")
    if not columns:
        return log
    currency, outcome = columns.get("currency", log.currency), columns.get("outcome", log.outcome)
    return replace(log, currency=_unit_name("currency", currency), outcome=_unit_name("outcome", outcome))


_SAMPLED = 1_000  # rows in which a sign of a currency is looked for
_MOST_PROPOSED = 8  # columns that a note names
_OPEN = ("pending",)  # states of an exported decision of which it is not known yet what is paid


class Reader:
    """One table on its way to a log."""

    def __init__(
        self,
        frame: pl.DataFrame,
        opened: Opened,
        roles: Roles,
        seen: tuple[SeenColumn, ...],
        units: Mapping[str, str],
        order: DateOrder | None,
    ) -> None:
        self.frame, self.opened, self.roles, self.seen = frame, opened, roles, seen
        self.order = order
        self.units = {**roles.units, **units}
        self._unit_by_name = None if "time" in units else roles.units.get("time")
        self.sieve = Sieve(frame.height, opened.name)
        self.notes: list[str | Assumption] = []
        self._has_key = True

    def column(self, role: str) -> pl.Series | None:
        if role == "arm" and self.roles.arm_columns:
            return arm_of_flags(self.frame.select(self.roles.arm_columns))
        name = self.roles.get(role)
        if role == "time" and name is not None and self.roles.time_of_day is not None:
            return with_time_of_day(self.frame[name], self.frame[self.roles.time_of_day])
        return None if name is None else self.frame[name]

    def log(
        self,
        words: Mapping[str, list[str] | None],
        feedback: Feedback | None,
        strata: Strata,
        until: object,
        currency: str | None,
    ) -> Log:
        sieve = self.sieve
        sieve.require_rows()
        is_pending = self._states()
        self._one_run()
        times = self._times()
        done = self._arms(words, times)
        answered = self.column("answered")
        is_flag = answered is not None and is_yes_or_no(answered)
        waits = waits_of(
            sieve,
            None if is_flag else answered,
            self.column("delay"),
            times,
            self.units.get("delay"),
            is_measured=self.roles.is_export or self.roles.is_simulated,
        )
        self.notes += waits.notes
        rewards = self._rewards(words["positive"] or ())
        if is_flag and answered is not None:
            rewards = self._where_answered(answered, rewards)
        outcomes, watched = self._outcomes(times, waits, rewards, feedback, until)
        probability = self._probabilities()
        costs = costs_of(
            sieve,
            None if (cost := self.column("cost")) is None else self._numbers(cost, "cost"),
            None if (paid := self.column("paid")) is None else self._numbers(paid, "paid"),
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
            currency=currency or self._currency(),
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
                column,
                role="time",
                unit=self.units.get("time"),
                is_rounds=is_rounds and not _is_epoch(column),
                order=self._order(),
            )
            text = text_of(column)
            sieve.drop(times.is_bad, "have a time that cannot be read", lambda row: text[row])
            stands_for_none = ~np.isfinite(times.value) & ~times.is_bad & without_missing(text).is_not_null().to_numpy()
            sieve.drop(stands_for_none, "have a date that stands for none", lambda row: text[row])
            sieve.drop(~np.isfinite(times.value), "have no time")
            sieve.require_rows()
        key = self.roles.get("key")
        is_of_people = self.roles.key_is_of_people or self._key_recurs()
        self.notes += drop_duplicates(
            sieve,
            self.frame,
            key=key,
            key_is_of_people=is_of_people,
            time=times.value if has_time else None,
            content=[name for role, name in self.roles.listed() if role not in ("time", "answered", "delay", "key")],
        )
        if key is not None and is_of_people:
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

    def _order(self) -> DateOrder | None:
        """Of day and month: as the caller says, or as it can be seen in any column of times."""
        if self.order is not None:
            return self.order
        columns = (self.column(role) for role in ("time", "answered", "observed_until"))
        return next((seen for one in columns if one is not None and (seen := order_of(one)) is not None), None)

    def _currency(self) -> str | None:
        """Of costs, where their column or its name says it."""
        column = self.column("cost")
        if column is None:
            column = self.column("paid")
        if column is None:
            return None
        said = currency_in(column.name)
        found = said or currency_of(text_of(column).head(_SAMPLED))
        if found is not None:
            why = f"the name of column {shown(column.name)}" if said else f"the signs in column {shown(column.name)}"
            self.notes.append(Assumption(what="currency", value=found, why=why))
        return found

    def _numbers(self, column: pl.Series, role: str) -> Numbers:
        return numbers_of(column, role=role, decimal_comma=self.opened.has_decimal_comma)

    def _key_recurs(self) -> bool:
        """Whether a column that was guessed to name rows names something that comes again and again."""
        import polars as pl

        key = self.roles.get("key")
        if key is None or "key" not in self.roles.guessed:
            return False
        names = self.frame.filter(pl.Series(self.sieve.kept))[key].drop_nulls()
        n_keys = names.n_unique()
        return n_keys < 0.95 * len(names) and self.frame.n_unique() > 1.05 * n_keys

    def _where_answered(self, answered: pl.Series, rewards: Rewards | None) -> Rewards:
        """Rewards of the rows that were answered, where a column says which; without a column of rewards, 1."""
        said = rewards_of(answered, positive=()).value == 1.0
        self.notes.append(f"Rows that column {shown(answered.name)} does not say are answered have no reward yet.")
        value = np.where(said, 1.0 if rewards is None else rewards.value, np.nan)
        is_bad = np.zeros(said.size, dtype=bool) if rewards is None else rewards.is_bad & said
        return Rewards(value, is_bad, None)

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
        rewards = rewards_of(column, positive=positive, decimal_comma=self.opened.has_decimal_comma)
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
        numbers = self._numbers(column, "probability")
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
        notes = [*self.opened.notes, *(one for one in self.notes if isinstance(one, str))]
        if unused and not self.roles.context:
            listed = ", ".join(self.roles.proposed[:_MOST_PROPOSED])
            proposal = f"; these could tell people apart: {listed}" if listed else ""
            notes.append(f"There is no context; columns can be named with context={proposal}.")
        assumptions = (*self.roles.assumptions, *(one for one in self.notes if isinstance(one, Assumption)))
        return Reading(
            rows=self.frame.height,
            columns=self.roles.listed(),
            guessed=self.roles.guessed,
            assumptions=tuple(dict.fromkeys(assumptions)),
            notes=tuple(dict.fromkeys(notes)),
            dropped=tuple(self.sieve.dropped),
            unused=unused,
            source=self.opened.name,
            seen=self.seen,
            proposed=self.roles.proposed,
        )


def _is_epoch(column: pl.Series) -> bool:
    return times_of(column, role="time", unit=None).kind == "world"


def _moment(micro: float) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(micro))
