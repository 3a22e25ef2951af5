"""LP_m, our hulls and greedy fill, against HiGHS."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from doral._arrays import Floats, Ints
from doral.pacing import Allocation, solve
from tests.twin import Edge, hull

TOLERANCE = 1e-9


@dataclass(frozen=True)
class Instance:
    """One LP_m."""

    values: Floats  # (J, A)
    costs: Floats
    shares: Floats
    rate: float

    def ours(self) -> Allocation:
        return solve(values=self.values, costs=self.costs, shares=self.shares, rate=self.rate)

    def value_at(self, rate: float) -> float:
        """The optimum, by HiGHS."""
        n_contexts, n_arms = self.values.shape
        gain = self.shares[:, None] * self.values
        spend = self.shares[:, None] * self.costs[None, :] * np.ones_like(self.values)
        one_arm = np.kron(np.eye(n_contexts), np.ones(n_arms))
        found = linprog(
            -gain.ravel(),
            A_ub=np.vstack([spend.ravel(), one_arm]),
            b_ub=np.append(rate, np.ones(n_contexts)),
            bounds=(0, None),
            method="highs",
            options={"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-10},
        )
        assert found.status == 0
        assert found.fun is not None
        return -float(found.fun)

    def dual_at(self, price: float) -> float:
        """rho * price + sum_j pi_j max(0, max_a eta_ja - price c_a): never below the value, equal at the best price."""
        worth = np.maximum(0.0, (self.values - price * self.costs).max(axis=1))
        return self.rate * price + float(self.shares @ worth)

    @property
    def scale(self) -> float:
        return 1.0 + float(np.abs(self.values).max())


def check(instance: Instance) -> None:
    ours = instance.ours()
    close = TOLERANCE * instance.scale
    spend = float((instance.shares[:, None] * ours.play * instance.costs).sum())
    # a feasible plan ...
    assert (ours.play >= 0.0).all()
    assert (ours.play.sum(axis=1) <= 1.0 + TOLERANCE).all()
    assert spend <= instance.rate * (1.0 + TOLERANCE)
    # ... as good as the solver's ...
    assert ours.value == pytest.approx(instance.value_at(instance.rate), abs=close)
    assert ours.value == pytest.approx(float((instance.shares[:, None] * ours.play * instance.values).sum()), abs=close)
    # ... with a price that proves it (strong duality), and unspent budget is worth nothing (complementary slackness)
    assert ours.price >= 0.0
    assert instance.dual_at(ours.price) == pytest.approx(ours.value, abs=close)
    assert ours.price * (instance.rate - spend) == pytest.approx(0.0, abs=close)


def check_price_range(instance: Instance) -> None:
    """The price lies between what one more and one less unit of budget are worth, by the solver."""
    step = 1e-4 * instance.rate
    value = instance.value_at(instance.rate)
    right = (instance.value_at(instance.rate + step) - value) / step
    left = (value - instance.value_at(instance.rate - step)) / step
    noise = 1e-8 * instance.scale / step
    assert right - noise <= instance.ours().price <= left + noise


# Few distinct numbers make ties, dominated arms and collinear points; many make the general case.
COARSE = st.integers(-2, 4).map(float)
FINE = st.integers(-10_000, 30_000).map(lambda number: number / 10_000)  # above the solver's own tolerance
RATES = st.sampled_from([1e-9, 1e-4, 0.05, 0.5, 0.999, 1.0, 1.5, 100.0]) | st.floats(1e-3, 2.0)


@st.composite
def instances(draw: st.DrawFn, *, unit_costs: bool) -> Instance:
    n_contexts, n_arms = draw(st.integers(1, 6)), draw(st.integers(1, 6))
    numbers = draw(st.sampled_from([COARSE, FINE]))
    values = np.array([[draw(numbers) for _ in range(n_arms)] for _ in range(n_contexts)])
    if unit_costs:
        costs = np.ones(n_arms)
    else:
        costs = np.array(
            [draw(st.sampled_from([0.5, 1.0, 1.5, 2.0, 3.0]) | st.floats(0.1, 5.0)) for _ in range(n_arms)]
        )
    weights = np.array([draw(st.sampled_from([1.0, 2.0]) | st.floats(0.05, 1.0)) for _ in range(n_contexts)])
    return Instance(values=values, costs=costs, shares=weights / weights.sum(), rate=draw(RATES))


@settings(max_examples=150)
@given(instance=instances(unit_costs=True))
def test_unit_costs(instance: Instance) -> None:
    check(instance)


@settings(max_examples=250)
@given(instance=instances(unit_costs=False))
def test_different_costs(instance: Instance) -> None:
    check(instance)


@settings(max_examples=60)
@given(instance=instances(unit_costs=False), rate=st.floats(0.05, 2.0))
def test_the_price_is_in_the_range_of_valid_ones(instance: Instance, rate: float) -> None:
    check_price_range(Instance(instance.values, instance.costs, instance.shares, rate))


@settings(max_examples=60)
@given(instance=instances(unit_costs=False), n_edges=st.integers(1, 12))
def test_rates_at_which_the_solution_changes(instance: Instance, n_edges: int) -> None:
    """rho exactly where an edge is used up: there the multiplier is not unique, and any valid one will do."""
    edges: list[Edge] = []
    for j, row in enumerate(instance.values):
        edges.extend(hull(row, instance.costs, range(row.size), j)[0])
    edges.sort(key=lambda edge: (-edge.slope, edge.context))
    rate = sum(float(instance.shares[edge.context]) * edge.cost for edge in edges[:n_edges])
    if rate > 0.0:
        check(Instance(instance.values, instance.costs, instance.shares, rate))


@settings(max_examples=100)
@given(values=st.lists(FINE, min_size=1, max_size=6), rate=RATES)
@example(values=[1.0, 1.0, 1.0], rate=0.5)
def test_unit_costs_are_the_fill_of_the_paper(values: list[float], rate: float) -> None:
    """Contexts in descending order of eta until rho is used; the marginal one gets the rest; ties by their order."""
    shares = np.full(len(values), 1.0 / len(values))
    ours = solve(values=np.array(values)[:, None], costs=np.ones(1), shares=shares, rate=rate)
    left = rate
    for j in sorted(range(len(values)), key=lambda j: (-values[j], j)):
        wanted = min(1.0, left / shares[j]) if values[j] > 0.0 else 0.0
        assert ours.play[j, 0] == pytest.approx(wanted, abs=1e-9)
        left = max(0.0, left - shares[j])


def test_a_rate_of_one_or_more_serves_everybody() -> None:
    ours = solve(values=np.array([[1.0, 3.0], [2.0, 0.5]]), costs=np.ones(2), shares=np.array([0.4, 0.6]), rate=1.2)
    assert ours.play.tolist() == [[0.0, 1.0], [1.0, 0.0]]
    assert ours.price == 0.0


def test_nothing_of_value_is_nothing_played() -> None:
    values = np.array([[-1.0, 0.0, -np.inf, np.nan]])
    ours = solve(values=values, costs=np.ones(4), shares=np.ones(1), rate=0.5)
    assert ours.play.sum() == 0.0
    assert (ours.value, ours.price) == (0.0, 0.0)


def test_a_dear_arm_is_mixed_with_a_cheap_one() -> None:
    """(1, 1) and (3, 2): half a unit above the cheap arm's cost buys a quarter of the dear one."""
    ours = solve(values=np.array([[1.0, 2.0]]), costs=np.array([1.0, 3.0]), shares=np.ones(1), rate=1.5)
    assert ours.play[0].tolist() == pytest.approx([0.75, 0.25])
    assert ours.price == pytest.approx(0.5)
    assert ours.value == pytest.approx(1.25)


# --- reserves ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Reserved:
    """One LP_m in which contexts of depth d and more may spend `caps[d]` together; caps[0] is rho."""

    instance: Instance
    caps: Floats
    depths: Ints

    def ours(self) -> Allocation:
        given = self.instance
        return solve(
            values=given.values,
            costs=given.costs,
            shares=given.shares,
            rate=given.rate,
            caps=self.caps,
            depths=self.depths,
        )

    def spend(self, play: Floats) -> list[float]:
        """What contexts of each depth and more spend together."""
        by_context = self.instance.shares * (play * self.instance.costs).sum(axis=1)
        return [float(by_context[self.depths >= d].sum()) for d in range(self.caps.size)]

    def value(self) -> float:
        """The optimum, by HiGHS."""
        n_contexts, n_arms = self.instance.values.shape
        gain = self.instance.shares[:, None] * self.instance.values
        spend = self.instance.shares[:, None] * self.instance.costs[None, :] * np.ones_like(gain)
        within_caps = [np.where(self.depths[:, None] >= d, spend, 0.0).ravel() for d in range(self.caps.size)]
        one_arm = np.kron(np.eye(n_contexts), np.ones(n_arms))
        found = linprog(
            -gain.ravel(),
            A_ub=np.vstack([*within_caps, one_arm]),
            b_ub=np.concatenate([self.caps, np.ones(n_contexts)]),
            bounds=(0, None),
            method="highs",
            options={"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-10},
        )
        assert found.status == 0
        assert found.fun is not None
        return -float(found.fun)


@st.composite
def reserved_instances(draw: st.DrawFn) -> Reserved:
    instance = draw(instances(unit_costs=draw(st.booleans())))
    n_depths = draw(st.integers(1, 4))
    # the deeper the less, down to nothing at all and up to no reserve
    left = [draw(st.sampled_from([0.0, 0.5, 1.0]) | st.floats(0.0, 1.0)) for _ in range(n_depths - 1)]
    depths = [draw(st.integers(0, n_depths - 1)) for _ in range(instance.shares.size)]
    caps = np.array(instance.rate * np.cumprod([1.0, *left]), dtype=np.float64)
    return Reserved(instance, caps, np.array(depths, dtype=np.int64))


@settings(max_examples=250)
@given(reserved=reserved_instances())
def test_reserves(reserved: Reserved) -> None:
    ours = reserved.ours()
    close = TOLERANCE * reserved.instance.scale
    assert (ours.play >= 0.0).all()
    assert (ours.play.sum(axis=1) <= 1.0 + TOLERANCE).all()
    for spend, cap in zip(reserved.spend(ours.play), reserved.caps.tolist(), strict=True):
        assert spend <= cap + TOLERANCE * reserved.instance.rate
    assert ours.value == pytest.approx(reserved.value(), abs=close)


@settings(max_examples=60)
@given(instance=instances(unit_costs=False), depth=st.integers(0, 2))
def test_caps_of_rho_reserve_nothing(instance: Instance, depth: int) -> None:
    depths = np.full(instance.shares.size, depth, dtype=np.int64)
    reserved = Reserved(instance, np.full(3, instance.rate), depths).ours()
    assert reserved.play.tolist() == instance.ours().play.tolist()


@settings(max_examples=60)
@given(reserved=reserved_instances())
def test_the_most_urgent_never_lose_by_a_reserve(reserved: Reserved) -> None:
    """Closing money to others cannot take any from the contexts of depth 0."""
    with_reserve = reserved.ours().play
    without = dataclasses.replace(reserved, caps=np.full(reserved.caps.size, reserved.instance.rate)).ours().play
    urgent = reserved.depths == 0
    gain = reserved.instance.shares[:, None] * reserved.instance.values
    value, before = (float((gain * play)[urgent].sum()) for play in (with_reserve, without))
    assert value >= before - TOLERANCE * reserved.instance.scale


def test_what_is_closed_to_the_ordinary_goes_to_the_urgent() -> None:
    """Rho 0.5, of which 0.3 is reserved for a context that is worth less: it gets them all the same."""
    ours = solve(
        values=np.array([[1.0], [2.0]]),
        costs=np.ones(1),
        shares=np.array([0.5, 0.5]),
        rate=0.5,
        caps=np.array([0.5, 0.2]),
        depths=np.array([0, 1], dtype=np.int64),
    )
    assert ours.play[:, 0].tolist() == pytest.approx([0.6, 0.4])
    assert ours.value == pytest.approx(0.7)
