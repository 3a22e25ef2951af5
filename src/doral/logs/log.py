"""A log: everybody who arrived, what was done, what came of it and when, as far as it is known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import numpy as np

from doral._arrays import Flags, Floats, Ints
from doral.logs.clock import Clock
from doral.problem import NOTHING, Feedback, Paid

if TYPE_CHECKING:
    import polars as pl

SKIPPED = -1  # in place of an arm: nothing was done
# The probabilities of a log are those of exactly what was done: told by whoever decided, or not told at all.
Told = Literal["all", "some", "none"]
Kind = Literal["times", "durations", "numbers", "yes/no", "words", "empty", "other"]  # of a column


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """Rows that were left out, and why."""

    rows: int
    why: str
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Assumption:
    """One thing that the reader assumed because the caller did not say it."""

    what: str  # the option that says otherwise: "arm", "feedback", "observed_until"
    value: str  # what was assumed: the name of a column, or a word
    why: str  # what in the data or in the names it rests on

    @property
    def sentence(self) -> str:
        """For reports: "arm is 'channel' (5 levels, each with one cost)."."""
        return f"{self.what} is {self.value!r} ({self.why})."


@dataclass(frozen=True, kw_only=True)
class SeenColumn:
    """What a column of the table holds."""

    name: str
    kind: Kind
    levels: int  # different values
    share_empty: float
    low: str = ""  # the least value, or the commonest words
    high: str = ""  # the greatest value

    @property
    def range(self) -> str:
        """For tables: "1 to 12", or the commonest words."""
        return f"{self.low} to {self.high}" if self.high and self.high != self.low else self.low


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a file became a log: which column was taken for what, what was assumed, what was left out and why."""

    rows: int  # of the file
    columns: tuple[tuple[str, str], ...]  # (role, name of the column), context columns each in a row of their own
    guessed: tuple[str, ...] = ()  # roles whose columns the caller did not name
    assumptions: tuple[Assumption, ...] = ()  # the most important first
    notes: tuple[str, ...] = ()  # sentences: units, zones, pooled levels, strata
    dropped: tuple[Dropped, ...] = ()
    unused: tuple[str, ...] = ()  # columns that were not taken for anything
    source: str = ""  # the name of the file
    seen: tuple[SeenColumn, ...] = ()  # what each column of the table holds
    proposed: tuple[str, ...] = ()  # columns that could be a context

    def text(self) -> str:
        """In words, a dozen lines."""
        from doral.logs.summary import in_words

        return in_words(self)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Log:
    """Everybody who arrived, in the order of time: an entry of every array is one of them. Made by `doral.read_log`.

    An answer is there where `delay` is finite, and then it came within what was `watched`. Of the others, nobody knows
    more than that nothing was heard for as long as they were watched: with explicit feedback their rewards are not
    known, with silent feedback they are 0 unless they come later.

    Attributes:
        name: What it is called.
        arms: Names of the arms, the one that was used most first.
        contexts: Names of classes of people, or of strata of several columns; the commonest first.
        clock: The unit of all times and durations below, and the one in which they are told.
        start: The first moment, in UTC, where the clock is one of the world; else None.
        time: When they arrived, since the start, ascending.
        context: The number of the context of each.
        arm: The number of the arm; -1 where nothing was done.
        reward: What came of it; NaN where there is no answer.
        delay: How long the answer took; infinite where there is none.
        watched: How long an answer was waited for, from the decision on.
        cost: The list price of what was done; 0 where nothing was.
        paid: What was paid in the end; NaN where that is not known yet.
        probability: Of what was done; NaN where nobody says.
        feedback: "explicit" or "silent", as in a problem.
        paid_when: "on_answer" where what is paid depends on what came of it, else "always".
        has_delays: Whether the file says when answers came: otherwise all were there at once.
        key: Of every row, where the file has them.
        currency: What a unit of cost is called, such as "EUR"; None where the caller did not say it.
        outcome: What a reward of 1 is called, in the singular, such as "booking"; None where the caller did not say it.
        reading: How a file became this log: what was taken for what, what was left out and why.
    """

    name: str
    arms: tuple[str, ...]
    contexts: tuple[str, ...]
    clock: Clock
    start: datetime | None
    time: Floats
    context: Ints
    arm: Ints
    reward: Floats
    delay: Floats
    watched: Floats
    cost: Floats
    paid: Floats
    probability: Floats
    feedback: Feedback
    paid_when: Paid
    has_delays: bool
    key: tuple[str, ...] = ()
    currency: str | None = None
    outcome: str | None = None
    reading: Reading

    def __post_init__(self) -> None:
        for array in (self.time, self.context, self.arm, self.reward, self.delay, self.watched):
            array.flags.writeable = False
        for array in (self.cost, self.paid, self.probability):
            array.flags.writeable = False

    def __len__(self) -> int:
        return int(self.time.size)

    def __repr__(self) -> str:
        n_answered = int(np.count_nonzero(self.is_answered))
        days = "" if self.start is None else f", from {self.start:%Y-%m-%d}"
        size = f"{len(self):,} arrivals, {n_answered:,} answered, {_many(len(self.arms), 'arm')}"
        size += f", {_many(len(self.contexts), 'context')}"
        return f"<Log {self.name!r}: {size}{days} over {self.clock.shown(self.span)}>"

    def _repr_html_(self) -> str:
        from doral.logs.summary import log_card

        return log_card(self)

    def to_frame(self) -> pl.DataFrame:
        """A tidy frame, times as dates where they are of the world; `read_log` reads it as the same log."""
        from doral.logs.source import frame_of

        return frame_of(self)

    @property
    def is_answered(self) -> Flags:
        """Whether an answer came."""
        return np.isfinite(self.delay)

    @property
    def is_served(self) -> Flags:
        """Whether anything was done."""
        return self.arm != SKIPPED

    @property
    def end(self) -> float:
        """On the clock: when the log was written, as far as it says."""
        return float((self.time + self.watched).max())

    @property
    def span(self) -> float:
        """From the first arrival to the last; of a single one, a unit of the clock."""
        return float(self.time[-1] - self.time[0]) or 1.0

    @property
    def told(self) -> Told:
        """Of how many rows the probability is known."""
        known = ~np.isnan(self.probability)
        return "all" if known.all() else "some" if known.any() else "none"

    @property
    def shares(self) -> Floats:
        """(J,) how often each context arrived."""
        return np.bincount(self.context, minlength=len(self.contexts)) / len(self)

    @property
    def skips_are_answered(self) -> bool:
        """Whether it is known what doing nothing brought."""
        return bool((self.is_answered & ~self.is_served).any())

    def arm_names(self) -> tuple[str, ...]:
        """Of the arms, and last of doing nothing where it was answered."""
        return (*self.arms, NOTHING) if self.skips_are_answered else self.arms


def _many(number: int, what: str) -> str:
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"
