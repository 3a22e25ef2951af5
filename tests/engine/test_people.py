"""People in the engine: what they are worth by NumPy, price and probability by HiGHS, and what may happen to them."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from scipy.optimize import linprog

from doral._arrays import Floats
from doral.engine.decide import PLAYED_FIRST, SKIPPED_BUDGET, SKIPPED_OVER, SKIPPED_UNAVAILABLE
from doral.engine.engine import ASK, Decided, Heard, Who
from doral.engine.events import LEARNED
from doral.engine.options import policy_of as named_policy
from doral.engine.people import CAME, ROUND_THEN
from doral.engine.state import CAP, State
from doral.errors import InvalidValue
from doral.estimators.design import FARTHEST
from doral.estimators.shrinkage import DOUBT, NOISE
from doral.person import Category
from doral.problem import Arm
from tests.engine.interpreted import Player, first
from tests.engine.people_campaigns import ALL_ARMS, Campaign, Made, amended, policy_of, problem_of, usual_reward


class Told:
    """What the sums say of everybody in the reservoir, right after a refresh of the lines and a decision."""

    def __init__(self, state: State, context: int, done: int) -> None:
        self.state, self.people = state, state.people
        self.n_contexts = state.tally.shape[1]
        n_people = state.contexts.size - self.n_contexts
        came = int(self.people.counts[CAME])
        self.rows = np.arange(self.n_contexts, self.n_contexts + min(came, n_people))
        self.row = self.n_contexts + (came - 1) % n_people  # of the one who is here
        self.done = done  # the arm; below 0: none
        self.n_arms = state.allowed.size
        self.columns = self._columns()
        self.mean, self.cov, self.narrowed = self._lines()
        self.levels, self.level_variance = self._levels()

    def _columns(self) -> Floats:
        design, traits = self.people.design, self.people.traits[self.rows]
        if not design.is_known[0]:
            return np.tile(np.eye(1, design.first.size), (self.rows.size, 1))
        z = (traits[:, design.number] - design.centre) / design.scale
        z = np.nan_to_num(np.clip(z, -FARTHEST, FARTHEST))
        assert (design.knot == -math.inf).all()
        assert (design.second < 0).all()
        return np.column_stack([np.ones(len(z)), (z[:, design.first[1:]] - design.shift[1:]) / design.unit[1:]])

    def _open(self) -> Floats:
        """Without the decision that was made after the look."""
        line_open = self.people.line.open.copy()
        if self.done >= 0 and self.state.rules.has_pending:
            slot = int(self.state.now["next"][0] - 1) & (self.state.ring.size - 1)
            x = self.people.ring_columns[slot]
            line_open[self.done] -= self.state.ring["expected"][slot] * np.outer(x, x)
        return line_open

    def _lines(self) -> tuple[Floats, Floats, Floats]:
        line, levels = self.people.line, self.people.levels
        n_arms, p = line.mean.shape
        n_categories, n_levels = levels.common.size, int(levels.n[0])
        mean, cov, narrowed = np.zeros((n_arms, p)), np.zeros((n_arms, p, p)), np.zeros((n_arms, p, p))
        d = np.diag(line.own)
        line_open = self._open()
        for a in range(n_arms):
            gram, moment = line.gram[a].copy(), line.moment[a].copy()
            for place in range(n_levels):
                variance = levels.common[levels.category[place]] + levels.own[levels.category[place]]
                part = variance / (line.noise[a] + n_categories * variance * levels.answers[place, a])
                gram -= part * np.outer(levels.x[place, a], levels.x[place, a])
                moment -= part * levels.x[place, a] * levels.told[place, a]
            t = np.linalg.inv(np.eye(p) + gram @ d / line.noise[a])
            mix = np.kron(line.arms[a], np.eye(p))
            m, m_cov = mix @ line.hyper_mean, mix @ line.hyper_cov @ mix.T
            mean[a] = d @ t @ moment / line.noise[a] + t.T @ m
            cov[a] = d @ t + t.T @ m_cov @ t
            narrowed[a] = np.linalg.inv(np.linalg.inv(cov[a]) + line_open[a] / line.noise[a])
        return mean, cov, narrowed

    def _levels(self) -> tuple[Floats, Floats]:
        """u + v of every level by arm."""
        levels, noise = self.people.levels, self.people.line.noise
        means, variances = np.zeros((int(levels.n[0]), self.n_arms)), np.zeros((int(levels.n[0]), self.n_arms))
        for place in range(int(levels.n[0])):
            s, d = levels.common[levels.category[place]], levels.own[levels.category[place]]
            prior = s + d * np.eye(self.n_arms)
            above = levels.reward[place] - np.einsum("ai,ai->a", levels.x[place], self.mean)
            # in units of the prior: levels of which nothing is known have no inverse
            cov = prior @ np.linalg.inv(np.eye(self.n_arms) + np.diag(levels.answers[place] / noise) @ prior)
            means[place], variances[place] = cov @ (above / noise), np.diag(cov)
        return means, variances

    def estimates(self) -> tuple[Floats, Floats, Floats, Floats]:
        """Of everybody: what arms bring, its variance from answers alone and with open decisions, and kin."""
        people, x = self.people, self.columns
        estimate = x @ self.mean.T
        of_line = np.einsum("ni,aij,nj->na", x, self.cov, x)
        narrow = np.einsum("ni,aij,nj->na", x, self.narrowed, x)
        of_levels, kin_levels = np.zeros_like(estimate), np.zeros_like(estimate)
        crowd = max(1.0, float(people.line.crowd[0, 0]))
        for i, row in enumerate(self.rows):
            for c, level in enumerate(people.own_levels[row]):
                if level < 0:
                    of_levels[i] += people.levels.common[c] + people.levels.own[c]
                    continue
                estimate[i] += self.levels[level]
                of_levels[i] += self.level_variance[level]
                kin_levels[i] += self.level_variance[level] ** 2 * people.levels.came[level] / crowd
        kin = np.full(self.rows.size, float(people.line.kin[0]))
        if people.categories.size:
            kin = ((of_line**2 * people.line.kin[0] + kin_levels) / (of_line + of_levels) ** 2).mean(axis=1)
        return estimate, of_line + of_levels, narrow + of_levels, kin

    def values(self) -> Floats:
        """weight (tau estimate + both errors), less what doing nothing brings."""
        state, now = self.state, self.state.now[0]
        estimate, variance, narrow, kin = self.estimates()
        scale = state.prior.scale
        rows, n = self.rows, self.n_arms
        assert state.ridge.estimate[rows, :n] == pytest.approx(estimate, rel=1e-6, abs=1e-8)
        assert state.ridge.norm[rows, :n] == pytest.approx(np.sqrt(variance / scale[NOISE]), rel=1e-6, abs=1e-8)
        norm = np.sqrt((narrow if state.rules.has_pending else variance) / scale[NOISE])
        assert state.people.kin[rows] == pytest.approx(kin, rel=1e-6)
        tau, error = state.tau[rows, :n], state.tau_error[rows, :n]
        weight = state.contexts["weight"][rows][:, None]
        horizon = float(now["horizon"])
        times = state.confidence.exploration

        def stretched(width: Floats) -> Floats:
            return np.sqrt(np.log1p(kin[:, None] * horizon * width**2 * scale[NOISE] / scale[DOUBT] / 2.3))

        def both(width: Floats, stretch: Floats) -> Floats:
            of_reward = tau * times * math.sqrt(scale[NOISE]) * width * stretch
            of_return = np.minimum(times * stretch * error, 1.0 - tau)
            return np.sqrt(of_reward**2 + (of_return * np.maximum(estimate, 0.0)) ** 2)

        stretch = state.ahead[rows, :n]  # as of when the row was valued: arrivals to come were no fewer then
        assert (stretch <= stretched(np.maximum(norm, 2.0 * error)) * (1.0 + 1e-9)).all()
        values = weight * (tau * estimate + both(norm, stretch))
        if state.rules.has_baseline:
            control = state.rules.control
            if control < 0:
                values -= weight * state.baseline[state.people.context[rows]][:, None]
            else:
                gram, waiting = self.people.line.gram[control, 0, 0], self._open()[control, 0, 0]
                alike = kin * (gram + (waiting if state.rules.has_pending else 0.0))
                width = np.maximum(norm, (1.0 / np.sqrt(1.0 + alike))[:, None])
                benefit = (weight * both(width, stretched(width)))[:, control][:, None]
                values -= (weight * tau * estimate)[:, control][:, None]
                values = np.where(values <= benefit, values - benefit, values)
                values[:, control] = -np.inf
        return np.where(state.barrier[rows, :n] == 0.0, values, -np.inf)

    def is_reconsidered(self) -> bool:
        """Whether somebody is thought to be worth nothing, and looked at once more (`doubt`)."""
        return self.state.rules.has_doubt and bool(self.state.doubt[0, self.rows].any())

    def solve(self, allowed: Any) -> tuple[float, Floats]:
        """The price for the one who is here, and with which probability they get each arm."""
        values, state = self.values(), self.state
        here = int(np.flatnonzero(self.rows == self.row)[0])
        values[here] = np.where(allowed, values[here], -np.inf)
        all_costs = state.hulls.costs
        costs = np.tile(all_costs, (self.rows.size, 1)) if len(all_costs) == 1 else all_costs[self.rows]
        n, n_arms = values.shape
        share, caps, depths = 1.0 / n, state.tiers[CAP], state.demand.depth[self.rows]
        spend = share * costs.ravel()
        within = [np.where(np.repeat(depths, n_arms) >= d, spend, 0.0) for d in range(caps.size)]
        table: Any = sparse.vstack(
            [sparse.csr_matrix(np.array(within)), sparse.kron(sparse.eye(n), np.ones((1, n_arms)))]
        )
        size = max(1.0, float(np.abs(values[np.isfinite(values)]).max(initial=0.0)))
        found = linprog(
            -share * np.where(values > 0.0, values, -size).ravel() / size,
            A_ub=table.tocsr(),
            b_ub=np.concatenate([caps, np.ones(n)]),
            method="highs",
            options={"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-10},
        )
        assert found.status == 0
        assert found.x is not None
        worth = -found.ineqlin.marginals[: caps.size] * size
        return float(worth[: depths[here] + 1].sum()), found.x.reshape(n, n_arms)[here]


def _beside_nothing(rng: Any, traits: Floats, arm: int) -> float:
    """The control, which is the last arm, brings little."""
    return float(0.5 + rng.normal()) if arm == 3 else usual_reward(rng, traits, arm)


ONE_CLASS: dict[str, Any] = {
    "arms": [Arm("a"), Arm("b", cost=2.0), Arm("c", cost=1.3)],
    "contexts": ["all"],
    "reserves": {},
    "person": ["one", "two"],
}
SETTINGS: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "all at once": ({}, {}, {"availability": 0.8, "own_terms": 0.2}),
    "one class, no category": (ONE_CLASS, {}, {}),
    "half-life": ({}, {"half_life": 60.0}, {}),
    "explore": ({}, {"explore": 0.15}, {"availability": 0.9}),
    "silent": ({"feedback": "silent"}, {}, {}),
    "known baseline": ({"baseline": 1.0}, {}, {}),
    "observed baseline": ({"baseline": "observed"}, {}, {"reward": _beside_nothing}),
    "paid on answer": ({"paid": "on_answer"}, {}, {}),
    "nothing pending": ({}, {"pending": "ignored", "curves_by": "arm"}, {"own_terms": 0.3}),
}


def campaign_of(name: str, *, seed: int = 0) -> Campaign:
    problem, options, play = SETTINGS[name]
    return Campaign(problem_of(**problem), policy_of(**options), seed=seed, **play)


def check(campaign: Campaign, decided: Decided, context: int, offered: Any, left: float) -> bool:
    """Price and probability of a decision that was made right after a look; False where there is nothing to compare."""
    state, problem = campaign.engine.state, campaign.problem
    if decided.reason in (PLAYED_FIRST, SKIPPED_OVER, SKIPPED_BUDGET, SKIPPED_UNAVAILABLE):
        return False
    if not state.prior.scale[DOUBT] > 0.0 or state.people.line.scale[0] == 0.0:
        return False
    done = decided.arm if decided.arm >= 0 or problem.control is None else problem.control
    told = Told(state, context, done)
    if told.is_reconsidered() or not state.people.design.is_known[0]:  # while all are alike, who is served is a tie
        return False
    costs = problem.costs_by_context[min(context, len(problem.costs_by_context) - 1)]
    allowed = costs <= left + 1e-9
    if offered.shape[1]:
        allowed &= offered[0] != 0
    price, play = told.solve(allowed)
    assert decided.price == pytest.approx(price, rel=1e-5, abs=1e-7)
    right = float(play[decided.arm]) if decided.arm >= 0 else 1.0 - float(play.sum())
    if state.rules.explore > 0.0:
        options = np.flatnonzero(allowed)
        here = state.hulls.costs[told.row if len(state.hulls.costs) > 1 else 0]
        n_options = options.size + 1
        share = min(0.15, state.tiers[CAP, 0] * n_options / float(here[options].sum()))
        right = (1.0 - share) * right + share / n_options
    assert decided.probability == pytest.approx(right, abs=1e-5)
    return True


@pytest.mark.parametrize("name", SETTINGS)
def test_values_price_and_probability_follow_from_the_sums(name: str) -> None:
    checked = 0
    for seed in range(2):
        campaign = campaign_of(name, seed=seed)
        for _ in range(220):
            left = campaign.engine.budget_left
            decided, context, _, offered = campaign.arrive()
            now = campaign.engine.state.now[0]
            if int(campaign.engine.state.people.counts[ROUND_THEN]) == int(now["round"]) - 1:
                checked += check(campaign, decided, context, offered, left)
            assert 0.0 <= decided.probability <= 1.0
            assert campaign.engine.budget_left >= -1e-9
    assert checked >= 15


# --- the same calls, the same bits -----------------------------------------------------------------------------------


def bits(campaign: Campaign) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in campaign.engine.arrays()}


@pytest.mark.parametrize("name", ["all at once", "silent", "half-life", "paid on answer"])
def test_the_same_calls_lead_to_the_same_bits_also_from_a_snapshot(name: str) -> None:
    campaign, again = campaign_of(name, seed=3).play(230), campaign_of(name, seed=3).play(120)
    restored = campaign_of(name, seed=3)
    restored.engine.restore({name: array.copy() for name, array in again.engine.arrays()})
    restored.rng, restored.clock = again.rng, again.clock
    restored.made, restored.open, restored.decided = again.made, again.open, again.decided
    restored.play(110)
    assert restored.decided == campaign.decided
    assert bits(restored) == bits(campaign)


@pytest.mark.parametrize("name", ["all at once", "silent"])
def test_growth_changes_nothing(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither that of the ring nor that of the levels."""
    roomy = campaign_of(name, seed=4).play(220)
    monkeypatch.setattr("doral.engine.setup.FIRST_CAPACITY", 4)
    monkeypatch.setattr("doral.estimators.levels.FIRST_LEVELS", 2)
    tight = campaign_of(name, seed=4)
    assert tight.engine.state.ring.size == 4
    tight.play(220)
    assert tight.engine.state.ring.size > 4
    assert tight.engine.state.people.levels.category.size > 8
    assert tight.decided == roomy.decided


# --- amendments ------------------------------------------------------------------------------------------------------

ONE_CATEGORY: dict[str, Any] = {
    "arms": [Arm("a"), Arm("b", cost=2.0)],
    "contexts": ["all"],
    "reserves": {},
    "person": ["one", Category("clinic")],
    "budget": 10_000.0,
    "horizon": 10_000,
}


class Facts:
    """Decisions that were made elsewhere, so that only what is learned from them differs."""

    def __init__(self, feedback: str, n: int = 120, **options: Any) -> None:
        rng = np.random.default_rng(8)
        self.campaign = Campaign(problem_of(**ONE_CATEGORY, feedback=feedback), policy_of(**options), seed=1)
        self.engine, self.n = self.campaign.engine, n
        self.who = [Who([float(rng.normal()), float(rng.integers(5))]) for _ in range(n)]
        self.arms = rng.integers(2, size=n).tolist()
        self.delay = np.where(rng.random(n) < 0.3, math.inf, rng.exponential(4.0, n)).tolist()
        self.rewards = (1.0 + rng.random(n)).tolist()
        self.numbers = dict[int, int]()
        self.is_open = [True] * n

    def made(self, i: int) -> Made:
        return Made(self.numbers[i], 0, self.arms[i], float(i + 1), self.who[i], 0)

    def step(self, i: int, *, skips: bool = False) -> None:
        recorded = (-1, 0.0) if skips else (self.arms[i], 1.0 + self.arms[i])
        list(self.engine.decide_many([0], ALL_ARMS, [float(i + 1)], recorded=[recorded], who=[self.who[i]]))
        if not skips:
            self.numbers[i] = self.engine.played - 1

    def hear(self, until: float, *, but: int = -1) -> None:
        for i in self.numbers:
            due = i + 1 + self.delay[i]
            if self.is_open[i] and due <= until and i != but:
                self.tell(i, self.rewards[i])

    def tell(self, i: int, reward: float) -> None:
        self.is_open[i] = False
        assert self.engine.answer([Heard(self.numbers[i], reward, i + 1 + self.delay[i])], who=[self.who[i]]) == [
            0 if self.delay[i] <= self.engine.cutoff else 1
        ]

    def sums(self) -> dict[str, Floats]:
        """After stock is taken."""
        self.engine.state.now["read_at"] = 0
        self.engine.pass_time(self.n + 100.0)
        people = self.engine.state.people
        return {
            "gram": people.line.gram,
            "moment": people.line.moment,
            "open": people.line.open,
            "by_age": people.by_age,
            "answers": people.levels.answers,
            "told": people.levels.told,
            "x": people.levels.x,
            "tally": self.engine.state.tally,
            "budget": self.engine.state.now["budget_left"],
        }


def assert_same(ours: dict[str, Floats], theirs: dict[str, Floats]) -> None:
    for name, array in ours.items():
        np.testing.assert_allclose(array, theirs[name], rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("feedback", ["explicit", "silent"])
@pytest.mark.parametrize("after", [0, 5, 25, 80])
def test_a_cancelled_decision_leaves_the_sums_as_if_it_never_was(feedback: str, after: int) -> None:
    """At once, while it is open, when it has grown old, and when it is gone."""
    with_it, without = Facts(feedback), Facts(feedback)
    which = 30
    for i in range(120):
        for facts in (with_it, without):
            facts.hear(float(i + 1), but=which)
            facts.step(i, skips=i == which and facts is without)
        if i == which + after:
            made = with_it.made(which)
            amended(with_it.campaign, made)
            with_it.engine.cancel(
                number=made.number, context=0, arm=made.arm, cost=1.0 + made.arm, reason=0, clock=float(i + 1)
            )
    assert_same(with_it.sums(), without.sums())


@pytest.mark.parametrize("feedback", ["explicit", "silent"])
@pytest.mark.parametrize("after", [0, 5, 25, 80])
def test_a_corrected_reward_is_learned_as_if_it_had_been_right_at_once(feedback: str, after: int) -> None:
    wrong, right = Facts(feedback), Facts(feedback)
    which = next(i for i in range(30, 60) if wrong.delay[i] < 2.0)
    for i in range(150):
        for facts, reward in ((wrong, 70.0), (right, 1.5)):
            facts.hear(float(i + 1), but=which)
            if i < 120:
                facts.step(i)
            if i == which + 2:
                facts.tell(which, reward)
        if i == which + 2 + after:
            amended(wrong.campaign, wrong.made(which))
            wrong.engine.correct(
                number=wrong.numbers[which], context=0, arm=wrong.arms[which], previous=70.0, reward=1.5
            )
    assert_same(wrong.sums(), right.sums())
    for facts in (wrong, right):  # variances were learned anew: they meet again
        for _ in range(20):
            facts.engine.state.now["calibrate_at"] = 0
            facts.engine.pass_time(400.0)
        facts.step(0)
    lines = [facts.engine.state.people for facts in (wrong, right)]
    assert lines[0].line.mean == pytest.approx(lines[1].line.mean, rel=0.02, abs=0.02)
    assert lines[0].levels.mean == pytest.approx(lines[1].levels.mean, rel=0.05, abs=0.02)


def test_the_only_reward_turns_out_to_be_none() -> None:
    facts, untold = Facts("explicit"), Facts("explicit")
    for i in range(60):
        facts.step(i)
        untold.step(i)
        if i == 10:
            for one, reward in ((facts, 1e9), (untold, 0.0)):
                one.delay[5] = 4.0
                one.tell(5, reward)
        if i == 20:
            amended(facts.campaign, facts.made(5))
            facts.engine.correct(number=facts.numbers[5], context=0, arm=facts.arms[5], previous=1e9, reward=0.0)
    ours, theirs = facts.engine.state.ridge, untold.engine.state.ridge
    assert (ours.estimate == 0.0).all()
    assert ours.norm == pytest.approx(theirs.norm, rel=1e-9)


@pytest.mark.parametrize("feedback", ["explicit", "silent"])
@pytest.mark.parametrize("after", [3, 20, 80])
def test_an_answer_that_is_told_late_is_learned_with_who_it_is_from(feedback: str, after: int) -> None:
    """While its decision is in the ring, and when that is gone."""
    late, timely = Facts(feedback), Facts(feedback)
    which = next(i for i in range(30, 40) if late.delay[i] < 3.0)
    due = which + 1 + late.delay[which]
    for i in range(120):
        for facts in (late, timely):
            facts.hear(float(i + 1), but=which if facts is late else -1)
            facts.step(i)
        if i == math.ceil(due) + after:
            heard = Heard(
                late.numbers[which], late.rewards[which], due, ASK, True, 0, late.arms[which], late.delay[which]
            )
            assert late.engine.answer([heard], who=[late.who[which]]) == [LEARNED]
            late.is_open[which] = False
    late.hear(400.0)
    timely.hear(400.0)
    assert_same(late.sums(), timely.sums())


def test_an_arm_joins_and_one_leaves() -> None:
    campaign = campaign_of("all at once", seed=6).play(120)
    before = {name: array.copy() for name, array in campaign.engine.arrays() if name.startswith("people.levels.")}
    problem = campaign.problem
    wider = dataclasses.replace(problem, arms=(*problem.arms, Arm("new", features=[0.3, 0.3], cost=0.5)))
    campaign.engine.add_arm(wider)
    campaign.problem = wider
    people = campaign.engine.state.people
    assert (people.levels.answers[:, :3] == before["people.levels.answers"]).all()
    assert (people.levels.answers[:, 3] == 0.0).all()
    checked, played = 0, 0
    for i in range(200):
        if i == 100:
            campaign.engine.retire(0)
        left = campaign.engine.budget_left
        decided, context, _, offered = campaign.arrive()
        played += decided.arm == 3
        assert i < 100 or decided.arm != 0
        assert_sane(campaign, decided)
        if int(campaign.engine.state.people.counts[ROUND_THEN]) == int(campaign.engine.state.now[0]["round"]) - 1:
            offered = np.ones((1, 4), dtype=np.uint8) if not offered.shape[1] else offered
            offered[0, 0] &= i < 100
            checked += check(campaign, decided, context, offered, left)
    assert played > 5
    assert checked > 10


# --- several categories ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n_categories", "n_levels"), [(1, 50), (2, 3), (2, 50), (3, 3)])
def test_effects_of_several_categories_are_found(n_categories: int, n_levels: int) -> None:
    """From answers to arms at random: within twice the error of a regression on as many numbers."""
    rng, n = np.random.default_rng(77), 3_000
    effects = 0.5 * rng.normal(size=(n_categories, n_levels))
    person = ["one", *(Category(f"c{i}") for i in range(n_categories))]
    problem = problem_of(**{**ONE_CATEGORY, "person": person, "budget": 1e6})
    engine = Campaign(problem, policy_of(reservoir=128)).engine
    for i in range(n):
        levels, arm = rng.integers(n_levels, size=n_categories), int(rng.integers(2))
        who = Who([float(rng.normal()), *levels.astype(float).tolist()])
        list(engine.decide_many([0], ALL_ARMS, [i + 1.0], recorded=[(arm, 1.0 + arm)], who=[who]))
        reward = 3.0 + 0.5 * arm + effects[np.arange(n_categories), levels].sum() + rng.normal()
        engine.answer([Heard(engine.played - 1, float(reward), i + 1.5)], who=[who])
    state = engine.state
    levels = state.people.traits[1:, 1:].astype(int)
    truth = 3.0 + effects[np.arange(n_categories), levels].sum(axis=1)[:, None] + np.array([0.0, 0.5])
    error = math.sqrt(float(((state.ridge.estimate[1:129, :2] - truth) ** 2).mean()))
    assert error < 2.0 * math.sqrt((2.0 + n_categories * (n_levels - 1)) / n)


# --- what may go wrong -----------------------------------------------------------------------------------------------


def assert_sane(campaign: Campaign, decided: Decided) -> None:
    assert 0.0 <= decided.probability <= 1.0
    assert math.isfinite(decided.value)
    assert math.isfinite(decided.price)
    assert campaign.engine.budget_left >= -1e-9
    ridge = campaign.engine.state.ridge
    assert np.isfinite(ridge.estimate).all()
    assert np.isfinite(ridge.norm).all()


def numbers(n: int, **changes: Any) -> dict[str, Any]:
    return {
        "arms": [Arm("a"), Arm("b", cost=2.0)],
        "contexts": ["all"],
        "reserves": {},
        "person": [f"n{i}" for i in range(n)],
        **changes,
    }


def _constant(rng: Any) -> Floats:
    return np.array([0.1, rng.normal(), -7e11])


def _collinear(rng: Any) -> Floats:
    x = rng.normal()
    return np.array([x, 2.0 * x, -x + 3.0])


def _sizes(rng: Any) -> Floats:
    return np.array([1e12 * rng.random(), 1e-12 * rng.normal(), rng.normal()])


def _heavy(rng: Any) -> Floats:
    return np.clip(rng.standard_cauchy(3) ** 5, -1e12, 1e12)


def _missing(rng: Any) -> Floats:
    return np.full(3, math.nan)


def _same(rng: Any) -> Floats:
    return np.array([1.0, 2.0, 3.0])


def _keys(rng: Any) -> Floats:
    return np.array([rng.normal(), float(rng.integers(10**6)), rng.normal()])


def _zero(rng: Any, traits: Floats, arm: int) -> float:
    return 0.0


def _equal(rng: Any, traits: Floats, arm: int) -> float:
    return 2.5


def _huge(rng: Any, traits: Floats, arm: int) -> float:
    return 1e9 * float(rng.normal())


def _tiny(rng: Any, traits: Floats, arm: int) -> float:
    return 1e-9 * float(rng.random())


def _exact(rng: Any, traits: Floats, arm: int) -> float:
    """No noise at all."""
    return float(np.nan_to_num(traits).sum()) * (arm + 1)


def _rare(rng: Any, traits: Floats, arm: int) -> float:
    return float(rng.random() < 0.02)


ODD: dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]] = {
    "constant": (numbers(3), {}, {"traits": _constant}),
    "collinear": (numbers(3), {}, {"traits": _collinear}),
    "collinear splines": (numbers(3), {"basis": "splines", "products": [("n0", "n1")]}, {"traits": _collinear}),
    "of any size": (numbers(3), {}, {"traits": _sizes}),
    "heavy tails": (numbers(3), {"basis": "splines"}, {"traits": _heavy}),
    "one person": (numbers(3), {}, {"traits": _same}),
    "all missing": (numbers(3), {"basis": "splines"}, {"traits": _missing}),
    "two rows": (numbers(3), {"reservoir": 2}, {}),
    "one arm": (numbers(2, arms=[Arm("a")]), {}, {}),
    "200 arms": (numbers(2, arms=[Arm(f"a{i}", cost=1.0 + i % 3) for i in range(200)]), {}, {}),
    "50 features": (numbers(50), {}, {}),
    "nothing": (numbers(3), {}, {"reward": _zero}),
    "all equal": (numbers(3), {}, {"reward": _equal}),
    "all equal, levels": ({}, {}, {"reward": _equal}),
    "huge": ({}, {}, {"reward": _huge}),
    "tiny": ({}, {}, {"reward": _tiny}),
    "no noise": (numbers(3), {}, {"reward": _exact, "traits": _collinear}),
    "no noise, sizes": (numbers(3), {}, {"reward": _exact, "traits": _sizes}),
    "rare": ({}, {}, {"reward": _rare}),
    "silent, rare": ({"feedback": "silent"}, {}, {"reward": _rare}),
    "silent, equal": ({"feedback": "silent"}, {}, {"reward": _equal}),
    "keys": (numbers(3, person=["n0", Category("key"), "n2"]), {}, {"traits": _keys}),
    "thompson": ({}, {"sampling": "thompson"}, {}),
    "paper": ({}, {"prior": "fixed", "bonus": "corrected", "printed": ["window"]}, {}),
    "short memory": ({}, {"half_life": 2.0}, {}),
    "short memory, silent": ({"feedback": "silent"}, {"half_life": 2.0}, {}),
}


@pytest.mark.parametrize("name", ODD)
def test_nothing_breaks(name: str) -> None:
    problem, options, play = ODD[name]
    budget = {"budget": 300.3} if name != "200 arms" else {"budget": 900.0, "horizon": 600}
    campaign = Campaign(problem_of(**{"horizon": 600, **problem, **budget}), policy_of(**options), seed=2, **play)
    for i in range(610 if name != "200 arms" else 300):
        decided, *_ = campaign.arrive()
        if i % 10 == 0:
            assert_sane(campaign, decided)
        assert 0.0 <= decided.probability <= 1.0
        assert campaign.engine.budget_left >= -1e-9
    if campaign.problem.paid == "always":
        assert campaign.spent <= campaign.problem.budget + 1e-9
    for leaf, array in campaign.engine.arrays():
        if leaf.startswith(("people.line", "people.levels", "prior")) and array.dtype == np.float64:
            assert np.isfinite(array).all(), leaf


def test_five_thousand_levels_that_are_each_seen_once() -> None:
    problem = problem_of(
        **{**numbers(1, person=["one", Category("key")]), "budget": 3_000.0, "horizon": 5_000, "missing": "error"}
    )
    next_key = iter(range(10_000))
    campaign = Campaign(
        problem, policy_of(reservoir=64), seed=1, traits=lambda rng: np.array([rng.normal(), float(next(next_key))])
    )
    for i in range(5_000):
        decided, *_ = campaign.arrive()
        if i % 250 == 0:
            assert_sane(campaign, decided)
    levels = campaign.engine.state.people.levels
    assert int(levels.n[0]) == 5_000
    assert campaign.spent <= 3_000.0
    assert np.isfinite(levels.mean).all()


# --- in Python, where an index that is out of bounds is an error -----------------------------------------------------

POLICIES: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in ("doral-otf", "d-alp", "wait-linucb", "d-lints", "eva")),
    ("doral", {"min_answers": 2}),
    ("doral", {"min_answers": 2, "learner": "auto", "prior": "cells"}),
    ("eva", {"printed": ["window"]}),
    ("doral-otf", {"pacing": "greedy"}),
    ("doral-otf", {"pacing": "coin"}),
    ("doral-otf", {"learner": "early"}),
    ("doral-otf", {"half_life": 10.0, "basis": "splines"}),
    ("doral-otf", {"printed": ["bonus", "window"]}),
    ("doral-otf", {"rate": "period", "curves_by": "arm"}),
]


@pytest.mark.usefixtures("interpreted")
@pytest.mark.parametrize(
    "changes", [{}, {"feedback": "silent"}, {"baseline": "observed", "paid": "on_answer"}], ids=str
)
@pytest.mark.parametrize(("base", "options"), POLICIES, ids=str)
def test_every_policy_stays_inside_its_arrays(base: str, options: dict[str, Any], changes: dict[str, Any]) -> None:
    chosen, problem = (
        named_policy(base, {"reservoir": 6, **options}),
        problem_of(**{**changes, "horizon": 60, "budget": 40.0}),
    )
    is_deaf = problem.feedback == "silent" and chosen.return_probability == "estimated"
    if is_deaf and (chosen.learner == "returned" or chosen.prior == "fixed"):
        with pytest.raises(InvalidValue):
            first(chosen, problem)
        return
    player, rng = Player(first(chosen, problem)), np.random.default_rng(1)
    waiting: list[tuple[float, int]] = []
    for clock in np.arange(1.0, 51.0).tolist():
        for due, number in waiting:
            if clock - 1.0 < due <= clock:
                player.answer(number, float(rng.normal(1.0)), due)
        traits = np.array([rng.normal(), rng.normal(), float(rng.integers(3)), math.nan])
        before = player.state.now[0].next
        choice = player.decide(int(rng.integers(2)), clock, traits=traits)
        assert 0.0 <= choice.probability <= 1.0
        assert math.isfinite(choice.value + choice.price)
        if player.state.now[0].next > before:
            waiting.append((clock + float(rng.exponential(3.0)), before))
    assert waiting
    assert np.isfinite(player.state.ridge.estimate).all()
