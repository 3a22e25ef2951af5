"""What the engine believes, for people: one arm at a time, and why arms are out."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from doral.engine.state import State, has
from doral.estimators.shrinkage import COUNT, REWARD
from doral.estimators.survival import whole_arm_curve
from doral.problem import Problem
from doral.racing import ACCEPTED, REJECTED

_STANDINGS = {ACCEPTED: "accepted", REJECTED: "rejected"}


@dataclass(frozen=True, kw_only=True)
class ArmView:
    """What the engine believes about one arm."""

    standing: str  # racing, accepted or rejected
    delay_lower: float  # bounds on the mean delay, from the race; infinite without data
    delay_upper: float
    return_ages: tuple[float, ...]
    return_curve: tuple[float, ...]  # probability of an answer by each age
    values: tuple[float, ...]  # estimated reward by context
    norms: tuple[float, ...]  # uncertainty by context


def view_arm(state: State, arm: int) -> ArmView:
    """One arm, for a report."""
    curves, n_contexts = state.curves, state.contexts.size
    n_arms = curves.arm_at_risk.shape[0]
    at_risk = curves.at_risk.reshape(-1, n_arms, curves.ages.size)[:, arm].sum(axis=0)
    seen = at_risk > 0.0
    standing, lower, upper = "accepted", -math.inf, math.inf
    if has(state, "race"):
        runner = state.race.field.arms[arm]
        standing = _STANDINGS.get(int(runner["standing"]), "racing")
        lower, upper = float(runner["lower"]), float(runner["upper"])
    return ArmView(
        standing=standing,
        delay_lower=lower,
        delay_upper=upper,
        return_ages=tuple(curves.ages[seen].tolist()),
        return_curve=tuple(whole_arm_curve(curves, arm)[seen].tolist()),
        values=tuple(state.ridge.estimate[:n_contexts, arm].tolist()),
        norms=tuple(state.ridge.norm[:n_contexts, arm].tolist()),
    )


def accepted(state: State, problem: Problem) -> tuple[str, ...]:
    """The arms that stage 1 let through; all where there was none."""
    if not has(state, "race"):
        return tuple(name for arm, name in enumerate(problem.arm_names) if arm != problem.control)
    standings = state.race.field.arms["standing"].tolist()
    return tuple(name for name, one in zip(problem.arm_names, standings, strict=True) if one == ACCEPTED)


@dataclass(frozen=True, kw_only=True)
class BaselineView:
    """What doing nothing is thought to bring, and what arms have brought beyond it."""

    rewards: tuple[float, ...]  # of somebody who is skipped, by context, in units of reward
    answers: tuple[float, ...]  # on which that rests, by context; 0 where it is known
    uplift: float  # of all decisions that the answers so far stand for, in units of worth


def view_baseline(state: State, problem: Problem) -> BaselineView | None:
    """None where doing nothing earns nothing."""
    if problem.baseline is None:
        return None
    count, rewards = state.tally[COUNT].copy(), state.tally[REWARD].copy()
    control, n_contexts = problem.control, problem.n_contexts
    tau = state.tau[:n_contexts, : problem.n_arms]
    if control is None:
        nothing, answers = np.array(problem.baseline), np.zeros(n_contexts)
    else:
        nothing, answers = tau[:, control] * state.ridge.estimate[:n_contexts, control], count[:, control].copy()
        count[:, control], rewards[:, control] = 0.0, 0.0
    decisions = count
    if state.chosen.learn_returned:  # whoever does not answer has brought nothing, but would have without the arm
        decisions = np.divide(count, tau, out=np.zeros_like(count), where=tau > 0.0)
    uplift = problem.weights @ (rewards.sum(axis=1) - decisions.sum(axis=1) * nothing)
    return BaselineView(rewards=tuple(nothing.tolist()), answers=tuple(answers.tolist()), uplift=float(uplift))


@dataclass(frozen=True, kw_only=True)
class RaceView:
    """How stage 1 went; zeros where there was none."""

    rounds: int = 0
    spend: float = 0.0
    ended: int = 0  # the round in which it ended
    is_capped: bool = False


def view_race(state: State) -> RaceView:
    if not has(state, "race"):
        return RaceView()
    progress = state.race.progress[0]
    return RaceView(
        rounds=int(progress["rounds"]),
        spend=float(progress["spend"]),
        ended=int(progress["ended"]),
        is_capped=bool(progress["is_capped"]),
    )


@dataclass(frozen=True, kw_only=True)
class Explored:
    """What trying out has done so far; nothing where there is none."""

    arrivals: int = 0
    """That got one of their options at random."""
    loss: float = 0.0
    """What that is thought to have cost: what the policy would have brought after its cost, less what came instead."""


def view_explored(state: State) -> Explored:
    if not has(state, "explore"):
        return Explored()
    return Explored(arrivals=int(state.explore["arrivals"][0]), loss=float(state.explore["loss"][0]))


@dataclass(frozen=True, kw_only=True)
class Certificate:
    """Why an arm is out of a context: at this price of budget, its rival is better for certain.

    Numbers are those of the last examination, or of the last one before the end came into view.
    """

    context: str
    arm: str
    round: int
    """Since when."""
    at_most: float
    """What the arm could bring at best, less what its cost is worth."""
    rival: str
    at_least: float
    """What the rival brings at worst, less what its cost is worth."""
    price: float
    """Of a unit of budget, on that day."""
    price_low: float
    """The rival is better at every price from here ..."""
    price_high: float
    """... to here: it is not known better, and moves."""

    def __str__(self) -> str:
        if math.isinf(self.price_high):  # of people: it holds at every price
            return (
                f"{self.arm} is worse for certain for {self.context}: it brings at most {self.at_most:.3g} where "
                f"{self.rival}, which costs no more, brings at least {self.at_least:.3g}, and that is the closest call"
            )
        return (
            f"{self.arm} is out in {self.context} since round {self.round:,}: it brings at most {self.at_most:.3g} "
            f"after its cost, {self.rival} at least {self.at_least:.3g} (a unit of budget is worth {self.price:.3g}"
            f"{self._range()})"
        )

    def _range(self) -> str:
        """Where all arms cost the same, the price plays no part."""
        if self.price_low == self.price_high:
            return ""
        return f", and it holds from {self.price_low:.3g} to {self.price_high:.3g}"


def certificates(state: State, problem: Problem) -> tuple[Certificate, ...]:
    """Those that held at the last examination, the oldest first."""
    if not has(state, "drop"):
        return ()
    arms, contexts, rows = problem.arm_names, problem.context_names, state.drop.certificates
    found = [
        Certificate(
            context=contexts[j],
            arm=arms[a],
            round=int(rows[j, a]["round"]),
            at_most=float(rows[j, a]["at_most"]),
            rival=arms[int(rows[j, a]["rival"])],
            at_least=float(rows[j, a]["at_least"]),
            price=float(rows[j, a]["price"]),
            price_low=float(rows[j, a]["price_low"]),
            price_high=float(rows[j, a]["price_high"]),
        )
        for j, a in zip(*rows["round"].nonzero(), strict=True)
    ]
    return tuple(sorted(found, key=lambda one: one.round))
