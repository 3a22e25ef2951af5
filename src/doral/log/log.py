"""A log: everybody who arrived, what was done, what came of it and when, as far as it is known."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Literal

import numpy as np

from doral._arrays import Flags, Floats, Ints
from doral.log.clock import Clock
from doral.problem import NOTHING, Feedback, Paid

if TYPE_CHECKING:
    import polars as pl

SKIPPED = -1  # in place of an arm: nothing was done
# The probabilities of a log are those of exactly what was done: told by whoever decided, or not told at all.
Told = Literal["all", "some", "none"]


@dataclass(frozen=True, kw_only=True)
class Dropped:
    """Rows that were left out, and why."""

    rows: int
    why: str
    examples: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Reading:
    """How a file became a log: which column was taken for what, what was guessed, what was left out and why."""

    rows: int  # of the file
    columns: tuple[tuple[str, str], ...]  # (role, name of the column), context columns each in a row of their own
    guessed: tuple[str, ...] = ()  # roles whose columns nobody named
    notes: tuple[str, ...] = ()  # sentences: units, zones, pooled levels, strata
    dropped: tuple[Dropped, ...] = ()
    unused: tuple[str, ...] = ()  # columns that were not taken for anything
    source: str = ""  # the name of the file

    def text(self) -> str:
        """In words, a dozen lines."""
        from doral.log.words import in_words

        return in_words(self)


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Log:
    """Everybody who arrived, in the order of time: an entry of every array is one of them.

    An answer is there where `delay` is finite, and then it came within what was `watched`. Of the others, nobody knows
    more than that nothing was heard for as long as they were watched: with explicit feedback their rewards are not
    known, with silent feedback they are 0 unless they come later.
    """

    name: str
    arms: tuple[str, ...]  # the one that was used most first
    contexts: tuple[str, ...]  # classes of people, or strata of several columns; the commonest first
    clock: Clock
    start: datetime | None  # in UTC, where the clock is one of the world
    time: Floats  # since the start, ascending
    context: Ints
    arm: Ints  # SKIPPED where nothing was done
    reward: Floats  # NaN where there is no answer
    delay: Floats  # infinite where there is none
    watched: Floats  # how long, from the decision on
    cost: Floats  # the list price of what was done; 0 where nothing was
    paid: Floats  # what was paid in the end; NaN where that is not known yet
    probability: Floats  # of what was done; NaN where nobody says
    feedback: Feedback
    paid_when: Paid  # "on_answer" where what is paid depends on what came of it
    has_delays: bool  # whether the file says when answers came: otherwise all were there at once
    key: tuple[str, ...] = ()  # of every row, where the file has them
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

    def to_frame(self) -> pl.DataFrame:
        """A tidy frame, times as dates where they are of the world; `read_log` reads it as the same log."""
        from doral.log.frames import frame_of

        return frame_of(self)

    @property
    def is_answered(self) -> Flags:
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
