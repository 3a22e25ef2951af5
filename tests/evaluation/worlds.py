"""Worlds of which all is known: logs of any policy, and what another one would have brought."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal

import numpy as np

from doral._arrays import Floats
from doral.logs.clock import Clock
from doral.logs.log import SKIPPED, Log, Reading


@dataclass(frozen=True, kw_only=True, eq=False)
class World:
    """Successes that come after exponential delays; the last option is doing nothing."""

    shares: Floats  # (J,)
    rates: Floats  # (J, A + 1)
    delays: Floats  # (J, A + 1) means, in days
    costs: Floats  # (A,)
    done: Floats  # (J, A + 1) what is done at the beginning
    done_later: Floats | None = None  # and at the end, with all that lies between
    feedback: Literal["explicit", "silent"] = "explicit"
    days: float = 100.0  # from the first arrival to the last, and then the log ends
    days_after: float = 0.0  # or so many days later
    pays_on_answer: bool = False

    @property
    def options(self) -> int:
        return int(self.rates.shape[1])

    def came(self, deadline: float) -> Floats:
        """(J, A + 1) what an option brings by the deadline."""
        came: Floats = self.rates * -np.expm1(-deadline / self.delays)
        came[:, -1] = 0.0
        return came

    def paid(self, deadline: float) -> Floats:
        """(J, A + 1) what it costs."""
        costs = np.append(self.costs, 0.0)
        return self.came(deadline) * costs if self.pays_on_answer else np.broadcast_to(costs, self.rates.shape)

    def value(self, table: Floats, deadline: float) -> float:
        return float((self.shares[:, None] * table * self.came(deadline)).sum())

    def cost(self, table: Floats, deadline: float) -> float:
        return float((self.shares[:, None] * table * self.paid(deadline)).sum())

    def logged(self) -> Floats:
        """What is done on average."""
        return self.done if self.done_later is None else 0.5 * (self.done + self.done_later)

    def log(self, n: int, seed: int) -> Log:
        """The log of so many arrivals; times are days."""
        rng = np.random.default_rng([7, seed])
        time = np.sort(rng.uniform(0.0, self.days, n))
        context = rng.choice(self.shares.size, n, p=self.shares).astype(np.int64)
        chances = self.done[context]
        if self.done_later is not None:
            share = (time / self.days)[:, None]
            chances = (1.0 - share) * chances + share * self.done_later[context]
        option = (rng.random(n)[:, None] > np.cumsum(chances, axis=1)).sum(axis=1).clip(0, self.options - 1)
        success = (rng.random(n) < self.rates[context, option]).astype(np.float64)
        delay = rng.exponential(1.0, n) * self.delays[context, option]
        watched = self.days + self.days_after - time
        is_heard = (delay <= watched) & (option < self.options - 1)
        if self.feedback == "silent":
            is_heard &= success > 0.0
        cost = np.append(self.costs, 0.0)[option]
        return Log(
            name="world",
            arms=tuple(f"arm-{one}" for one in range(self.options - 1)),
            contexts=tuple(f"context-{one}" for one in range(self.shares.size)),
            clock=Clock("units", "units"),
            start=None,
            time=time,
            context=context,
            arm=np.where(option == self.options - 1, SKIPPED, option).astype(np.int64),
            reward=np.where(is_heard, success, np.nan),
            delay=np.where(is_heard, delay, np.inf),
            watched=watched,
            cost=cost,
            paid=np.where(is_heard, cost * success, np.nan) if self.pays_on_answer else cost.copy(),
            probability=np.take_along_axis(chances, option[:, None], axis=1)[:, 0],
            feedback=self.feedback,
            paid_when="on_answer" if self.pays_on_answer else "always",
            has_delays=True,
            reading=Reading(rows=n, columns=()),
        )


def small_world(seed: int = 0, *, n_contexts: int = 4, n_arms: int = 3, thin: float = 0.0) -> World:
    """Rates from 5 to 60%; with `thin`, the last arm is given that rarely."""
    rng = np.random.default_rng(seed)
    shape = (n_contexts, n_arms + 1)
    done = rng.dirichlet(np.full(n_arms + 1, 4.0), n_contexts)
    if thin:
        done[:, n_arms - 1] = thin
        done /= done.sum(axis=1, keepdims=True)
    return World(
        shares=rng.dirichlet(np.full(n_contexts, 5.0)),
        rates=rng.uniform(0.05, 0.6, shape),
        delays=rng.uniform(3.0, 20.0, shape),
        costs=rng.uniform(1.0, 3.0, n_arms),
        done=done,
    )


def untold(log: Log) -> Log:
    """The same without probabilities."""
    return dataclasses.replace(log, probability=np.full(len(log), np.nan))


def mixed(world: World, seed: int) -> Floats:
    """Some other policy, with everything in it."""
    return np.random.default_rng([3, seed]).dirichlet(np.ones(world.options), world.shares.size)
