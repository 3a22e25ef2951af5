"""The space of random problems: one table of properties, and the problem that a seed draws from it.

Each property has a generator of its own, keyed by (seed, property), so that a new property leaves the draws of the
others as they are. Where two properties exclude each other, the later one of the table gives way, and the properties
returned beside the scenario are those that it has.
"""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from typing import Any

import numpy as np

import doral
from doral._arrays import Floats
from doral.delays import Fixed, Geometric, Law, Lognormal, Never, Pareto
from doral.problem import OBSERVED
from doral.simulation.scenario.rows import Rows
from doral.simulation.scenario.strata import MOST_STRATA
from doral.simulation.world.oracle import expected_payments, returned_by
from doral.simulation.world.truth import make_truth

# Drawn log-uniformly between these.
RANGES: Mapping[str, tuple[float, float]] = {
    "arrivals": (300.0, 20_000.0),
    "arms": (2.0, 20.0),
    "contexts": (1.0, 20.0),
    "deadline": (0.005, 1.0),  # of the horizon
    "delay": (0.02, 1.0),  # median of an answer, of the deadline
    "cost_spread": (3.0, 300.0),  # dearest to cheapest arm
    "rare_rate": (0.002, 0.05),  # mean over contexts and arms
    "usual_rate": (0.1, 0.9),  # best context and arm
    "noise": (0.1, 2.0),  # sd of Gaussian rewards, of their mean
    "waves": (2.0, 30.0),
}
# Drawn uniformly between these.
UNIFORM: Mapping[str, tuple[float, float]] = {
    "budget": (0.05, 0.9),  # of what serving every arrival costs, a mean over arms
    "arm_sd": (0.1, 0.8),  # of the logarithm of what arms are worth
    "context_sd": (0.0, 0.6),
    "cell_sd": (0.0, 0.5),
    "cost_power": (0.2, 0.8),  # values grow with this power of the cost
    "spend_cv": (1.0, 3.0),  # sd of spend, of its mean
    "never_at_once": (0.3, 0.9),  # where answers come at once or never
    "baseline": (0.2, 0.6),  # of what the arms are worth on average
}
# Chosen with these probabilities.
CHOICES: Mapping[str, Mapping[str, float]] = {
    "costs": {"equal": 0.3, "spread": 0.55, "by context": 0.15},
    "free arm": {"none": 0.7, "worthless": 0.2, "of some worth": 0.1},
    "values": {"grow with cost": 0.5, "unrelated to cost": 0.5},
    "rewards": {"rates": 0.4, "rare rates": 0.2, "gaussian": 0.2, "spend": 0.2},
    "spend": {"zero-inflated": 0.6, "lognormal": 0.4},
    "feedback": {"explicit": 0.5, "silent": 0.5},
    "reward range": {"declared": 0.5, "not declared": 0.5},
    "delays": {"geometric": 0.35, "pareto": 0.2, "lognormal": 0.3, "at once or never": 0.15},
    "delays by": {"all alike": 0.3, "arm": 0.4, "context and arm": 0.3},
    "never answered": {"0%": 0.5, "10%": 0.3, "50%": 0.2},
    "paid": {"always": 0.88, "on success": 0.12},
    "reserve": {"1": 0.5, "0.999": 0.5},
    "features": {"absent": 0.5, "right": 0.25, "wrong": 0.25},
    "shares": {"given": 0.5, "learned": 0.5},
    "people": {"none": 0.88, "with features": 0.12},
    "arrivals": {"one by one": 0.8, "waves": 0.1, "in time": 0.1},
    "number of arrivals": {"expected": 0.5, "learned": 0.5},
    "drift": {"none": 0.84, "phases": 0.16},
    "availability": {"always": 0.9, "changes": 0.1},
    "baseline": {"none": 0.86, "known": 0.09, "observed": 0.05},
}
PEOPLE = 2_000
ARRIVALS_OF_STRATUM = 100  # at least, on average
MOST_ROWS, MOST_ROWS_OF_CELL, LEAST_ROWS_OF_CELL = 40_000, 1_000, 100
LARGEST_RATE = 0.95
LEAST_SHARE = 0.005  # of arrivals, of a context
LEAST_PAID = 0.1  # of list prices, in the budget of problems that are paid for on success


def draw_scenario(seed: int) -> tuple[doral.Scenario, dict[str, Any]]:
    """Return the problem of a seed, named random/SEED, and its properties."""
    return _Draw(seed).scenario()


def strata_of(scenario: doral.Scenario) -> doral.Scenario:
    """Return a scenario with people as policies see it that know contexts alone: in strata, fewer of few arrivals."""
    most = scenario.problem.expected_rounds // ARRIVALS_OF_STRATUM
    return scenario.stratified(bins=3, at_most=min(max(1, most), MOST_STRATA))


def arrivals_of(seed: int) -> int:
    """Return the number of arrivals of a problem without drawing the rest of it."""
    return round(_ranged("arrivals", seed))


def _rng(seed: int, purpose: str) -> np.random.Generator:
    return np.random.Generator(np.random.Philox(np.random.SeedSequence((seed, zlib.crc32(purpose.encode())))))


def _ranged(name: str, seed: int) -> float:
    low, high = RANGES[name] if name in RANGES else UNIFORM[name]
    uniform = float(_rng(seed, f"number {name}").random())
    return low * (high / low) ** uniform if name in RANGES else low + (high - low) * uniform


class _Draw:
    """One draw: sizes and properties first, then what arms are worth, then the problem around it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chosen = {
            name: str(_rng(seed, f"choice {name}").choice(list(of), p=list(of.values())))
            for name, of in CHOICES.items()
        }
        self.n = arrivals_of(seed)
        self.arms, self.contexts = round(_ranged("arms", seed)), round(_ranged("contexts", seed))
        self._settle_conflicts()
        self.deadline = max(2.0, round(_ranged("deadline", seed) * self.n))
        self.cost = self._costs()
        self.features, self.worth = self._features_and_worth()

    def rng(self, purpose: str) -> np.random.Generator:
        return _rng(self.seed, purpose)

    def number(self, name: str) -> float:
        return _ranged(name, self.seed)

    def _settle_conflicts(self) -> None:
        """Replace properties that the simulator does not offer together."""
        chosen = self.chosen
        if chosen["costs"] == "equal":
            chosen["values"] = "unrelated to cost"
        if chosen["people"] != "none":
            self.contexts = min(self.contexts, 5)
            if chosen["rewards"] == "spend":
                chosen["rewards"] = "gaussian"
        if chosen["rewards"] == "spend" or chosen["people"] != "none" or chosen["arrivals"] != "one by one":
            chosen["drift"] = "none"
        if self.contexts == 1:  # in each phase, contexts take the means of each other
            chosen["drift"] = "none"
        if chosen["rewards"] == "spend" and chosen["baseline"] == "observed":
            chosen["baseline"] = "known"
        if chosen["baseline"] != "none":
            chosen["paid"] = "always"

    def _costs(self) -> Floats:
        """Return what a use costs (J, A)."""
        rng = self.rng("costs")
        cost = np.ones((self.contexts, self.arms))
        if self.chosen["costs"] != "equal":
            logs = np.concatenate([[0.0, 1.0], rng.random(max(0, self.arms - 2))])
            cost = cost * self.number("cost_spread") ** rng.permutation(logs)
        if self.chosen["costs"] == "by context":
            cost = cost * np.exp(rng.normal(0.0, 0.3, cost.shape))
        if self.chosen["free arm"] != "none":
            cost[:, 0] = 0.0
        return cost * 10.0 ** rng.uniform(-1.0, 2.0)

    def _features_and_worth(self) -> tuple[Floats, Floats]:
        """Return features (A, k), and what a use is worth (J, A) relative to the mean, which is 1.

        Where features are right, values are linear in them, but for a floor that keeps them above 0.
        """
        rng, shape = self.rng("worth"), (self.contexts, self.arms)
        arm_sd, context_sd, cell_sd = (self.number(f"{name}_sd") for name in ("arm", "context", "cell"))
        growth = np.zeros(shape)
        if self.chosen["values"] == "grow with cost":
            paid = self.cost > 0.0
            logs = np.log(np.where(paid, self.cost, np.median(self.cost[paid])))
            growth = self.number("cost_power") * (logs - logs.mean())
        of_context = np.exp(rng.normal(0.0, context_sd, (self.contexts, 1)))
        k = int(rng.integers(2, 7))
        features = rng.normal(0.0, 1.0, (self.arms, k))
        features[:, 0] = 1.0
        if self.chosen["features"] == "right":
            features[:, 1] = np.exp(growth.mean(axis=0)) if growth.any() else features[:, 1]
            scale = max(1.0, features[:, 1].max())
            theta = rng.normal(0.0, cell_sd / math.sqrt(k), (self.contexts, k))
            theta += rng.normal(0.0, arm_sd / math.sqrt(k), k)
            theta[:, 0] = 1.0
            theta[:, 1] = np.where(growth.any(), 1.0, theta[:, 1])
            worth = of_context * np.maximum(features @ theta.T, 0.02 * scale).T
        else:
            logs = rng.normal(0.0, arm_sd, (1, self.arms)) + rng.normal(0.0, cell_sd, shape)
            worth = of_context * np.exp(logs + growth)
        if self.chosen["free arm"] != "none":
            part = 0.0 if self.chosen["free arm"] == "worthless" else rng.uniform(0.2, 0.6)
            worth[:, 0] *= part
            features[0] *= part if self.chosen["features"] == "right" else 1.0  # values stay linear in features
        return features if self.chosen["features"] != "absent" else np.zeros((self.arms, 0)), worth / worth.mean()

    def _laws(self) -> tuple[tuple[Law, ...], ...]:
        """Return delay laws, one row for all contexts or one per context."""
        rng, by = self.rng("laws"), self.chosen["delays by"]
        median = self.number("delay") * self.deadline
        scatter = {"all alike": 0.0, "arm": 0.5, "context and arm": 0.5}[by]
        rows = self.contexts if by == "context and arm" else 1
        medians = np.maximum(1.0, median * np.exp(scatter * rng.normal(0.0, 1.0, (rows, self.arms))))
        shape, sigma = rng.uniform(0.8, 2.5), rng.uniform(0.3, 1.5)
        never = float(self.chosen["never answered"].rstrip("%")) / 100.0
        silence = np.clip(
            self.number("never_at_once") * (1.0 + scatter * rng.uniform(-0.6, 0.2, medians.shape)), 0, 0.95
        )

        def law(row: int, arm: int) -> Law:
            middle = float(medians[row, arm])
            if self.chosen["delays"] == "at once or never":
                return Never(Fixed(1.0), max(never, float(silence[row, arm])))
            usual: Law = Geometric(max(1.0, middle / math.log(2.0)))
            if self.chosen["delays"] == "pareto":
                usual = Pareto(minimum=middle / 2.0 ** (1.0 / shape), shape=shape)
            elif self.chosen["delays"] == "lognormal":
                usual = Lognormal(median=middle, sigma=sigma)
            return Never(usual, never) if never else usual

        return tuple(tuple(law(row, arm) for arm in range(self.arms)) for row in range(rows))

    def _rewards(self, laws: tuple[tuple[Law, ...], ...]) -> dict[str, Any]:
        """Return the arguments of the scenario that say what arms bring, and the range of rewards."""
        kind, worth = self.chosen["rewards"], self.worth
        people = self._people() if self.chosen["people"] != "none" else {}
        if people:
            worth = people.pop("worth")
        if kind in ("rates", "rare rates"):
            level = self.number("usual_rate") / worth.max() if kind == "rates" else self.number("rare_rate")
            means = np.minimum(worth * level, LARGEST_RATE)
            return {"means": means, "noise": "bernoulli", "delays": laws, "range": (0.0, 1.0), **people}
        unit = 10.0 ** self.rng("unit").uniform(-1.0, 3.0)
        if kind == "spend":
            rows = self._rows(worth * unit, laws)
            return {"rows": rows, "range": (0.0, float(rows.reward.max()))}
        sd = unit * self.number("noise")
        low, high = float(worth.min() * unit - 6.0 * sd), float(worth.max() * unit + 6.0 * sd)
        return {
            "means": worth * unit,
            "noise": "gaussian",
            "noise_sd": sd,
            "delays": laws,
            "range": (low, high),
            **people,
        }

    def _rows(self, means: Floats, laws: tuple[tuple[Law, ...], ...]) -> Rows:
        """Return rows of spend whose means are exactly these; zero-inflated gamma, or lognormal."""
        rng, cv = self.rng("rows"), self.number("spend_cv")
        size = int(np.clip(MOST_ROWS // means.size, LEAST_ROWS_OF_CELL, MOST_ROWS_OF_CELL))
        rewards, delays = [], []
        for j in range(self.contexts):
            for arm in range(self.arms):
                if self.chosen["spend"] == "zero-inflated":
                    amounts = rng.exponential(1.0, size) * (rng.random(size) < 2.0 / (1.0 + cv * cv))
                else:
                    amounts = rng.lognormal(0.0, math.sqrt(math.log1p(cv * cv)), size)
                amounts[0] = amounts[0] or 1.0
                rewards.append(amounts * (means[j, arm] / amounts.mean()))
                delays.append(np.ceil(laws[j % len(laws)][arm].sample(rng.random(size))))
        starts = (np.arange(means.size) * size).reshape(means.shape)
        return Rows.from_arrays(reward=np.concatenate(rewards), delay=np.concatenate(delays), starts=starts)

    def _people(self) -> dict[str, Any]:
        """Return people with features, and what a use is worth for each of them (N, A)."""
        rng = self.rng("people")
        k, noise = int(rng.integers(1, 5)), int(rng.integers(0, 4))
        x = rng.normal(0.0, 1.0, (PEOPLE, k + noise))
        contexts = rng.choice(self.contexts, PEOPLE, p=self._shares())
        contexts[: self.contexts] = np.arange(self.contexts)
        effects = rng.normal(0.0, 0.3, (k, 1)) + rng.normal(0.0, 0.3, (k, self.arms))
        logs = np.clip((x[:, :k] @ effects) / math.sqrt(k) * 1.5, -2.0, 2.0)
        worth = self.worth[contexts] * np.exp(logs)
        names = self._context_names()
        return {
            "people": {f"x{i}": x[:, i] for i in range(k + noise)},
            "classes": [names[j] for j in contexts],
            "worth": worth / worth.mean(),
        }

    def _context_names(self) -> list[str]:
        return [f"c{j}" for j in range(self.contexts)]

    def _shares(self) -> Floats:
        drawn = self.rng("shares").dirichlet(np.ones(self.contexts)) + LEAST_SHARE
        shares: Floats = drawn / drawn.sum()
        return shares

    def _arrivals(self) -> dict[str, Any]:
        """Return the times of arrivals where the end is a date; the unit of time is the mean gap between arrivals."""
        kind, rng = self.chosen["arrivals"], self.rng("times")
        if kind == "one by one":
            return {}
        if kind == "in time":
            hours = np.exp(rng.normal(0.0, 1.0, 24)).tolist()
            return {"arrivals": doral.Arrivals(number=self.n, day=self.n / 14.0, hours=hours)}
        waves = min(round(self.number("waves")), self.n // 20)
        sizes = rng.multinomial(self.n, rng.dirichlet(np.full(waves, 5.0)))
        times = np.repeat(np.arange(waves) * (self.n / waves), sizes)
        return {"arrivals": doral.Calendar(times, resampled=False)}

    def _problem(self, *, reward_range: tuple[float, float], person: list[str], **changes: Any) -> doral.Problem:
        names = self._context_names()
        by_context = self.chosen["costs"] == "by context"
        arms = [
            doral.Arm(
                f"a{arm}",
                features=self.features[arm].tolist(),
                cost=dict(zip(names, self.cost[:, arm].tolist(), strict=True))
                if by_context
                else float(self.cost[0, arm]),
            )
            for arm in range(self.arms)
        ]
        end: dict[str, Any] = {"horizon": self.n}
        if self.chosen["arrivals"] != "one by one":
            end = {"until": float(self.n)}
            if self.chosen["number of arrivals"] == "expected":
                end["expected_arrivals"] = self.n
        given = dict(zip(names, self._shares().tolist(), strict=True)) if self.chosen["shares"] == "given" else names
        if self.chosen["paid"] == "on success":
            end |= {"paid": "on_answer", "reserve": float(self.chosen["reserve"])}
        if self.chosen["reward range"] == "declared":
            end["reward_range"] = reward_range
        return doral.Problem(
            arms=arms,
            contexts=given,
            deadline=self.deadline,
            feedback=self.chosen["feedback"],  # type: ignore[arg-type]
            person=person,
            **(end | changes),
        )

    def scenario(self) -> tuple[doral.Scenario, dict[str, Any]]:
        """Return the scenario and its properties."""
        laws = self._laws()
        said = self._rewards(laws)
        reward_range, person = said.pop("range"), list(said.get("people", {}))
        said |= self._arrivals()
        if not person:
            said["shares"] = self._shares()
        if self.chosen["paid"] == "on success":
            said["paid"] = "on_success"
        if self.chosen["drift"] != "none":
            said["phases"] = int(self.rng("phases").integers(2, 5))
        if self.chosen["availability"] != "always":
            said["availability"] = self.rng("availability").uniform(0.3, 1.0, self.arms).tolist()

        def made(budget: float, **changes: Any) -> doral.Scenario:
            problem = self._problem(reward_range=reward_range, person=person, budget=budget, **changes)
            return doral.Scenario(name=f"random/{self.seed}", problem=problem, **said)

        plenty = made(float(self.cost.max()) * self.n)  # for what follows from the truth
        budget = self.number("budget") * self._cost_of_all(plenty)
        baseline: dict[str, Any] = {}
        if self.chosen["baseline"] != "none":
            earned = self.number("baseline") * self._counted(plenty).mean(axis=1)
            baseline = {"baseline": dict(zip(self._context_names(), earned.tolist(), strict=True))}
            if self.chosen["baseline"] == "observed":
                baseline = {"baseline": OBSERVED}
                said |= self._nothing(said, laws, earned)
        return made(budget, **baseline), self._properties()

    def _cost_of_all(self, scenario: doral.Scenario) -> float:
        """Return what serving every arrival costs, a mean over the arms that cost something."""
        costs = self.cost[:, self.cost[0] > 0.0].mean(axis=1)
        of_all = self.n * float((self._shares() * costs).sum())
        truth = make_truth(scenario, seed=0, run=0)
        paid = expected_payments(scenario, truth.world.means, truth.people)
        return of_all if paid is None else of_all * max(LEAST_PAID, float(paid.mean()))

    def _counted(self, scenario: doral.Scenario) -> Floats:
        """Return what a use brings within the deadline (J, A)."""
        truth = make_truth(scenario, seed=0, run=0)
        if truth.people is None:
            return truth.counted[0]
        classes = truth.people.classes
        return np.array([truth.counted[0][classes == j].mean(axis=0) for j in range(self.contexts)])

    def _nothing(self, said: dict[str, Any], laws: tuple[tuple[Law, ...], ...], earned: Floats) -> dict[str, Any]:
        """Return what is true of skipping, which is answered as the first arm is and earns this much in time (J,)."""
        in_time = np.array([returned_by(row[0], self.deadline) for row in laws])
        means = earned / np.maximum(in_time, 0.1)
        if said["noise"] == "bernoulli":
            means = np.minimum(means, LARGEST_RATE)
        if "people" in said:
            number = {name: j for j, name in enumerate(self._context_names())}
            means = means[[number[name] for name in said["classes"]]]
        changes: dict[str, Any] = {
            "delays": tuple((*row, row[0]) for row in laws),
            "baseline_means": means.tolist(),
        }
        if "availability" in said:
            changes["availability"] = [*said["availability"], 1.0]
        return changes

    def _properties(self) -> dict[str, Any]:
        """Return sizes, numbers and choices; without those that say something of what the problem does not have."""
        numbers = {name: self.number(name) for name in ("budget", "deadline", "delay")}
        if self.chosen["costs"] != "equal":
            numbers["cost_spread"] = self.number("cost_spread")
        absent = {
            "spend": self.chosen["rewards"] != "spend",
            "reserve": self.chosen["paid"] == "always",
            "number of arrivals": self.chosen["arrivals"] == "one by one",
        }
        sizes = {"seed": self.seed, "n": self.n, "n_arms": self.arms, "n_contexts": self.contexts}
        return {**sizes, **numbers, **{name: word for name, word in self.chosen.items() if not absent.get(name)}}
