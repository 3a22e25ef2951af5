"""ParetoBandit: `BanditRouter` sends prompts to language models; arms are its models, `BudgetPacer` keeps the budget.

Doing nothing is one more model, which costs nothing and brings nothing: the pacer's price decides between it and the
arms. The pacer is told of costs when they are committed: with the answers, which come late, it would notice too late.
"""

from __future__ import annotations

import math

import numpy as np
from pareto_bandit import BanditRouter
from pareto_bandit.budget_pacer import BudgetPacer, PacingMode
from pareto_bandit.config import BEST_K3_TABULA_RASA_HPARAMS as COLD_START
from pareto_bandit.feature_service import FeatureService
from pareto_bandit.types import RouterConfig
from plain import OWN, Plain

PEER, PACKAGE = "ParetoBandit", "paretobandit"
NOTHING = "nothing"


class Router(Plain):
    """`BanditRouter` and `BudgetPacer` (soft) with the authors' settings for a cold start (alpha 0.05, forgetting)."""

    WAYS = (OWN,)
    forgetting_factor = COLD_START["forgetting_factor"]

    def __init__(self, problem, seed, way):
        super().__init__(problem, seed, way)
        arms = [arm for arm in range(problem.n_arms) if arm != problem.control]
        prices = problem.costs.mean(axis=0)
        registry = {str(arm): _priced(prices[arm]) for arm in arms}
        # A soft price only: with the hard ceiling of the default, arms of one price are all there, or none of them.
        self._pacer = BudgetPacer(problem.budget / problem.expected_rounds, mode=PacingMode.SOFT)
        self._router = BanditRouter.create(
            model_registry={**registry, NOTHING: _priced(0.0)},
            priors="none",
            feature_service=FeatureService.for_precomputed(dimension=problem.n_x + 1),
            # It cuts rewards to 0..1 unless told otherwise, and measures prices between a floor and a ceiling.
            config=RouterConfig(
                reward_min=-math.inf,
                reward_max=math.inf,
                market_cost_floor=float(prices[arms].min()) / 2,
                market_cost_ceiling=float(prices[arms].max()),
            ),
            alpha=COLD_START["alpha"],
            forgetting_factor=self.forgetting_factor,
            cost_penalty=0.0,  # beside the pacer's
            budget_pacer=self._pacer,
            bandit_seed=seed,
        )

    def decide(self, arrival):
        if not arrival.available:
            return None
        self._pacer.target_avg_spend_usd = arrival.budget_left / arrival.rounds_left
        chosen, _ = self._router.route(_features(arrival.x), input_tokens=1000, output_tokens=0)
        if chosen == NOTHING or int(chosen) not in arrival.available:
            self._router.update(NOTHING, _features(arrival.x), 0.0, advance_time=False)
            self._pacer.observe(0.0)
            return None
        self._pacer.observe(arrival.costs[int(chosen)] * self.paid_share())
        return int(chosen)

    def learn(self, answer, worth):
        value = worth * self.costs[answer.context, answer.arm]  # costs are the pacer's matter
        self._router.update(str(answer.arm), _features(answer.x), value, advance_time=False)


class Steady(Router):
    """The same, but nothing is forgotten (forgetting_factor 1), as its documents advise where nothing changes."""

    forgetting_factor = 1.0


def _priced(price):
    """Dollars for a million tokens, so that 1,000 tokens cost the price."""
    return {"input_cost_per_m": 1000.0 * float(price), "output_cost_per_m": 1000.0 * float(price)}


def _features(x):
    """Its vectors end with a 1."""
    return np.append(x, 1.0)


POLICIES = {"router": Router, "router, no forgetting": Steady}
SPEED = "router, no forgetting"
