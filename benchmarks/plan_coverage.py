"""How often the true return curve lies inside its 95% band, as a whole: a table in Markdown.

    python -m benchmarks.plan_coverage --logs 200 --rows 300 3000 20000

Logs are drawn from laws that are known. A curve counts as inside where no age of its grid, from the first answer to the
last age at which enough were watched, lies outside.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from doral._arrays import Floats
from doral.delays import Exponential, Geometric, Law, Never, Pareto
from doral.logs.clock import Clock
from doral.logs.log import Log, Reading
from doral.planning.curves import ReturnCurve, return_curves


@dataclass(frozen=True)
class World:
    """Delays by outcome, how often answers are above 0, and how long a log is watched, from its first arrival on."""

    name: str
    above: Law
    below: Law
    chance: float
    watched: float

    def share_by(self, ages: Floats) -> Floats:
        """The true share that has answered by each age."""
        above, below = self.above.return_probability(ages), self.below.return_probability(ages)
        return np.asarray(self.chance * above + (1.0 - self.chance) * below, dtype=np.float64)


def _alike(name: str, law: Law, watched: float) -> World:
    return World(name, law, law, 0.3, watched)


WORLDS = (
    _alike("geometric, mean 60", Geometric(60), 300),
    _alike("Pareto, shape 1.5", Pareto(10, 1.5), 400),
    _alike("half never answer", Never(Exponential(50), 0.5), 300),
    _alike("heavy censoring (45% at most)", Exponential(100), 60),
    _alike("nothing censored", Exponential(100), math.inf),
    World("positives first, a third never", Never(Exponential(30), 0.1), Never(Pareto(20, 1.2), 0.4), 0.4, 400),
)


class Covered(NamedTuple):
    """Shares of logs, or of ages: inside the band; below it; above it; inside the limits of a single age."""

    inside: float
    below: float
    above: float
    pointwise: float


def make_log(world: World, rows: int, rng: np.random.Generator) -> Log:
    """A log of one arm: arrivals at an even pace, watched until its end."""
    longest = world.watched if math.isfinite(world.watched) else 1.0
    time = np.sort(rng.uniform(0.0, longest, rows))
    watched = longest - time if math.isfinite(world.watched) else np.full(rows, 1e6)
    is_above = rng.random(rows) < world.chance
    uniforms = rng.random(rows)
    delay = np.where(is_above, world.above.sample(uniforms), world.below.sample(uniforms))
    delay = np.where(delay <= watched, delay, np.inf)
    return Log(
        name=world.name,
        arms=("arm",),
        contexts=("context",),
        clock=Clock("units", "units"),
        start=None,
        time=time,
        context=np.zeros(rows, dtype=np.int64),
        arm=np.zeros(rows, dtype=np.int64),
        reward=np.where(np.isfinite(delay), is_above.astype(np.float64), np.nan),
        delay=delay,
        watched=watched,
        cost=np.ones(rows),
        paid=np.ones(rows),
        probability=np.full(rows, np.nan),
        feedback="explicit",
        paid_when="always",
        has_delays=True,
        reading=Reading(rows=rows, columns=()),
    )


def truth_of(world: World, curve: ReturnCurve) -> Floats:
    """The true curve at the ages of an estimated one."""
    ages = np.array(curve.ages)
    if curve.outcome == "any":
        return world.share_by(ages)
    law = world.above if curve.outcome == "above 0" else world.below
    by = np.asarray(law.return_probability(ages), dtype=np.float64)
    return by / by[-1]


def compared(curve: ReturnCurve, truth: Floats) -> tuple[bool, bool, float]:
    """Whether the truth is somewhere below the band, or above it, and the share of ages inside their own limits."""
    seen = np.array([low is not None for low in curve.low]) & (np.array(curve.share) > 0.0)
    low, high, point_low, point_high = (
        np.array([math.nan if one is None else one for one in side])[seen]
        for side in (curve.low, curve.high, curve.point_low, curve.point_high)
    )
    truth = truth[seen]
    if truth.size == 0:
        return False, False, 1.0
    pointwise = float(((truth >= point_low - 1e-9) & (truth <= point_high + 1e-9)).mean())
    return bool((truth < low - 1e-9).any()), bool((truth > high + 1e-9).any()), pointwise


def coverage(world: World, rows: int, logs: int, *, seed: int = 0) -> dict[str, Covered]:
    """By outcome."""
    found: dict[str, list[tuple[bool, bool, float]]] = {}
    for one in range(logs):
        # by name: worlds that share their draws would be wrong together
        log = make_log(world, rows, np.random.default_rng([seed, *world.name.encode(), rows, one]))
        for curve in return_curves(log, seed=one, most_arms=0):
            found.setdefault(curve.outcome, []).append(compared(curve, truth_of(world, curve)))
    table = {outcome: np.array(each, dtype=np.float64) for outcome, each in found.items()}
    return {
        outcome: Covered(
            inside=float((each[:, :2].max(axis=1) == 0.0).mean()),
            below=float(each[:, 0].mean()),
            above=float(each[:, 1].mean()),
            pointwise=float(each[:, 2].mean()),
        )
        for outcome, each in table.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--logs", type=int, default=200)
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 3_000, 20_000])
    given = parser.parse_args()
    print("| delays | rows | answers | whole curve inside (%) | truth below | truth above | single ages inside |")
    print("| --- | ---: | --- | ---: | ---: | ---: | ---: |")
    for world in WORLDS:
        for rows in given.rows:
            for outcome, one in coverage(world, rows, given.logs).items():
                error = 100.0 * 1.96 * math.sqrt(one.inside * (1.0 - one.inside) / given.logs)
                print(
                    f"| {world.name} | {rows:,} | {outcome} | {100 * one.inside:.1f} +- {error:.1f} | "
                    f"{100 * one.below:.1f} | {100 * one.above:.1f} | {100 * one.pointwise:.1f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
