"""Problems on which an earlier default failed: an LLM router, answers at once or never, waves, rare rates."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import numpy as np

import doral
from doral.delays import Fixed, Geometric, Lognormal, Never
from doral.simulation.scenario.rows import Rows


def router() -> doral.Scenario:
    """Three language models whose costs are 1 : 18 : 523, scored in [0, 1]; the budget is below one use of the second.

    The cheapest model alone earns about 0.81 per request, and scores grow by some points with the cost.
    """
    rng = np.random.default_rng(29)
    kinds, arrivals, of_cell = 9, 1_824, 400
    cheap = np.linspace(0.62, 0.95, kinds)
    means = np.column_stack([cheap, cheap + 0.55 * (1.0 - cheap), cheap + 0.7 * (1.0 - cheap)])
    rewards = [rng.beta(6.0 * mean, 6.0 * (1.0 - mean), of_cell) for mean in means.ravel()]
    starts = (np.arange(means.size) * of_cell).reshape(means.shape)
    names = ("cheap", "middle", "dear")
    problem = doral.Problem(
        arms=[doral.Arm(name, cost=cost) for name, cost in zip(names, (29.0, 527.0, 15_155.0), strict=True)],
        contexts=[f"kind-{j}" for j in range(kinds)],
        budget=83.0 * arrivals,
        horizon=arrivals,
        deadline=20,
        reward_range=(0.0, 1.0),
    )
    rows = Rows.from_arrays(reward=np.concatenate(rewards), delay=np.ones(means.size * of_cell), starts=starts)
    return doral.Scenario(name="named/router", problem=problem, rows=rows)


def at_once() -> doral.Scenario:
    """Answers come at once or never, and the deadline is as long as the horizon; two arms are free and worthless."""
    rng = np.random.default_rng(30)
    arms, contexts, arrivals = 10, 4, 16_000
    cost = np.concatenate([[0.0, 0.0], np.geomspace(1.0, 12.0, arms - 2)])
    means = 0.05 * cost**0.7 * np.exp(rng.normal(0.0, 0.4, (contexts, arms)))
    problem = doral.Problem(
        arms=[doral.Arm(f"arm-{arm}", cost=price) for arm, price in enumerate(cost.tolist())],
        contexts=[f"context-{j}" for j in range(contexts)],
        budget=0.3 * arrivals * cost[2:].mean(),
        horizon=arrivals,
        deadline=arrivals,
    )
    silence = [1.0, 1.0, *rng.uniform(0.3, 0.6, arms - 2).tolist()]
    return doral.Scenario(
        name="named/at-once",
        problem=problem,
        means=np.minimum(means, 0.9),
        noise="bernoulli",
        delays=[Never(Fixed(1.0), never) for never in silence],
    )


def waves() -> doral.Scenario:
    """12,700 arrive at the same moment, six times; one arm is free and brings nothing."""
    rng = np.random.default_rng(31)
    arms, contexts, wave, of_waves = 5, 5, 12_700, 6
    until = 60.0  # days
    cost = np.concatenate([[0.0], rng.uniform(1.0, 4.0, arms - 1)])
    means = 0.3 * np.exp(rng.normal(0.0, 0.35, (1, arms)) + rng.normal(0.0, 0.25, (contexts, arms)))
    means[:, 0] = 0.0
    problem = doral.Problem(
        arms=[doral.Arm(f"arm-{arm}", cost=price) for arm, price in enumerate(cost.tolist())],
        contexts=[f"context-{j}" for j in range(contexts)],
        budget=0.6 * wave * of_waves * cost[1:].mean(),
        until=until,
        expected_arrivals=wave * of_waves,
        deadline=until / of_waves,
    )
    return doral.Scenario(
        name="named/waves",
        problem=problem,
        means=np.minimum(means, 0.9),
        noise="bernoulli",
        delays=Lognormal(median=3.0, sigma=0.5),
        arrivals=doral.Calendar(np.repeat(np.arange(of_waves) * (until / of_waves), wave), resampled=False),
    )


def rare() -> doral.Scenario:
    """20 contexts, 1,244 arrivals, rates of some percent, and a budget for one in twenty."""
    rng = np.random.default_rng(32)
    arms, contexts, arrivals = 6, 20, 1_244
    cost = np.geomspace(1.0, 6.0, arms)
    means = 0.03 * np.exp(
        0.4 * np.log(cost) + rng.normal(0.0, 0.5, (contexts, 1)) + rng.normal(0.0, 0.4, (contexts, arms))
    )
    problem = doral.Problem(
        arms=[doral.Arm(f"arm-{arm}", cost=price) for arm, price in enumerate(cost.tolist())],
        contexts=[f"context-{j}" for j in range(contexts)],
        budget=0.05 * arrivals * cost.mean(),
        horizon=arrivals,
        deadline=150,
        feedback="silent",
    )
    return doral.Scenario(
        name="named/rare",
        problem=problem,
        means=np.minimum(means, 0.9),
        noise="bernoulli",
        delays=Geometric(mean=60.0 / math.log(2.0)),
    )


NAMED: Mapping[str, Callable[[], doral.Scenario]] = {"router": router, "at-once": at_once, "waves": waves, "rare": rare}
