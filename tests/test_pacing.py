"""LP_m, our hulls and greedy fill, against HiGHS."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from doral._arrays import Floats, Ints
from doral.pacing import (
    FEW_CONTEXTS,
    Allocation,
    Demand,
    Edges,
    Hulls,
    Share,
    fill,
    new_demand,
    new_hulls,
    place,
    reweigh,
    set_hull,
    share_above,
    solve,
)
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
        spend = self.shares[:, None] * self.costs * np.ones_like(self.values)
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
        spend = self.instance.shares[:, None] * self.instance.costs * np.ones_like(gain)
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


# --- many contexts, and what changes between rounds ----------------------------------------------------------------


class Pace:
    """LP_m as a policy keeps it from round to round; `room` is that of a block, 0 for the best."""

    def __init__(self, costs: Floats, weights: Floats, depths: Ints, n_depths: int, *, room: int = 0) -> None:
        self.demand: Demand = new_demand(weights=weights, total=float(weights.sum()), depths=depths, n_depths=n_depths)
        self.hulls: Hulls = new_hulls(costs, weights.size, n_depths, room=room)
        self.n_depths = n_depths

    @property
    def edges(self) -> Edges:
        return self.hulls.edges

    @property
    def shares(self) -> Floats:
        shares: Floats = self.demand.weight / self.demand.total
        return shares

    def set_values(self, context: int, values: Floats) -> None:
        set_hull(self.hulls, context, context, values)
        place(self.hulls, self.demand, context)

    def reweigh(self, context: int, weight: float) -> None:
        reweigh(self.hulls, self.demand, context, weight)

    def share(self, caps: Floats, context: int, restricted: Floats | None = None) -> Share:
        row = context
        if restricted is not None:
            row = self.demand.weight.size
            set_hull(self.hulls, row, context, restricted)
        return fill(self.hulls, self.demand, caps, np.zeros(self.n_depths), context, row)

    def play(self, caps: Floats, n_arms: int) -> Floats:
        """The solution, context by context."""
        play = np.zeros((self.demand.weight.size, n_arms))
        for context in range(self.demand.weight.size):
            share = self.share(caps, context)
            if share.upper >= 0:
                play[context, self.hulls.arm[context, share.upper]] += share.probability
            if share.lower >= 0 and share.upper != share.lower:
                play[context, self.hulls.arm[context, share.lower]] += 1.0 - share.probability
        return play

    def stored(self) -> list[tuple[float, int, float]]:
        """Slope, context and cost of all edges, block after block."""
        found: list[tuple[float, int, float]] = []
        for start, size in zip(self.edges.start, self.edges.size[: self.edges.n_blocks[0]], strict=False):
            block = slice(start, start + size)
            found.extend(zip(self.edges.slope[block], self.edges.context[block], self.edges.cost[block], strict=True))
        return found

    def check(self) -> None:
        """Blocks are sorted, neither full of air nor of the wrong sums, and hold every edge once."""
        edges, n_blocks = self.edges, int(self.edges.n_blocks[0])
        sizes = edges.size[:n_blocks]
        stored = self.stored()
        assert stored == sorted(stored, key=lambda edge: (-edge[0], edge[1]))
        assert len(stored) == edges.n_placed.sum() == self.hulls.length[:-1].sum()
        assert sorted(edges.start) == [block * edges.room[0] for block in range(edges.start.size)]
        assert (sizes <= edges.room[0]).all()
        if n_blocks > 1:
            assert (sizes > 0).all()
            assert (sizes[1:] + sizes[:-1] > edges.room[0] // 2).all()
        for j, n in enumerate(edges.n_placed):
            assert [edge[0] for edge in stored if edge[1] == j] == edges.placed[j, :n].tolist()
        if edges.size.size > 1:
            self.check_sums()
        np.testing.assert_allclose(self.demand.of_depth.sum(), self.demand.total, rtol=1e-12)

    def check_sums(self) -> None:
        edges = self.edges
        for k in range(int(edges.n_blocks[0])):
            block = slice(edges.start[k], edges.start[k] + edges.size[k])
            owners = edges.context[block]
            need = np.bincount(
                self.demand.depth[owners], self.demand.weight[owners] * edges.cost[block], minlength=self.n_depths
            )
            np.testing.assert_allclose(edges.need[k], need, rtol=1e-12, atol=1e-12 * self.demand.total[0])
            if edges.size[k] > 0:
                last = block.stop - 1
                assert (edges.last_slope[k], edges.last_context[k]) == (edges.slope[last], edges.context[last])


@dataclass(frozen=True)
class Change:
    """What happens before a round: new values or a new weight of one context, or an arm that leaves for good."""

    context: int
    values: Floats | None = None
    weight: float = 0.0
    leaving: int = -1


def apply(change: Change, pace: Pace, values: Floats) -> None:
    """`values` (J, A) are those of now, and are kept up to date."""
    if change.values is not None:
        values[change.context] = change.values
        pace.set_values(change.context, values[change.context])
    elif change.leaving >= 0:
        values[:, change.leaving] = -np.inf
        for context in range(values.shape[0]):
            pace.set_values(context, values[context])
    else:
        pace.reweigh(change.context, change.weight)


@dataclass(frozen=True)
class Course:
    """What happens to J contexts; both kinds of structure are led through it."""

    costs: Floats
    weights: Floats
    depths: Ints
    caps: Floats
    room: int
    changes: list[Change]
    restricted: Floats


@st.composite
def courses(draw: st.DrawFn) -> Course:
    n_contexts, n_arms, n_depths = draw(st.integers(1, 40)), draw(st.integers(1, 5)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    is_coarse, is_unit = draw(st.booleans()), draw(st.booleans())

    def values() -> Floats:
        return rng.integers(-1, 4, n_arms).astype(np.float64) if is_coarse else rng.normal(0.3, 1.0, n_arms)

    changes = [Change(context, values=values()) for context in rng.permutation(n_contexts).tolist()]
    for kind in draw(st.lists(st.sampled_from("vvvvwwl"), max_size=120)):
        context = int(rng.integers(n_contexts))
        if kind == "v":
            changes.append(Change(context, values=values()))
        elif kind == "w":
            changes.append(Change(context, weight=float(rng.integers(1, 30))))
        else:
            changes.append(Change(context, leaving=int(rng.integers(n_arms))))
    # a rate at which no edge ends: there the price is not unique
    rate = draw(st.integers(1, 150)) * 0.0123456789
    left = [draw(st.sampled_from([0.0, 0.314159, 0.871])) for _ in range(n_depths - 1)]
    return Course(
        costs=np.ones(n_arms) if is_unit else rng.choice([0.5, 1.0, 1.5, 2.0, 3.7], n_arms),
        weights=rng.integers(1, 9, n_contexts).astype(np.float64),
        depths=rng.integers(0, n_depths, n_contexts),
        caps=np.array(rate * np.cumprod([1.0, *left])),
        room=draw(st.integers(2, 12)),
        changes=changes,
        restricted=values(),
    )


def check_same(blocks: Pace, one: Pace, course: Course, context: int) -> None:
    for restricted in (None, course.restricted):
        ours = blocks.share(course.caps, context, restricted)
        wanted = one.share(course.caps, context, restricted)
        assert (ours.lower, ours.upper) == (wanted.lower, wanted.upper)
        assert ours.probability == pytest.approx(wanted.probability, abs=1e-12)
        assert ours.price == pytest.approx(wanted.price, abs=1e-12)


@settings(max_examples=120)
@given(course=courses())
def test_blocks_say_what_one_block_says(course: Course) -> None:
    n_contexts, n_depths = course.weights.size, course.caps.size
    blocks = Pace(course.costs, course.weights, course.depths, n_depths, room=course.room)
    one = Pace(course.costs, course.weights, course.depths, n_depths)
    assert one.edges.size.size == 1
    tables = [np.zeros((n_contexts, course.costs.size)) for _ in range(2)]
    for number, change in enumerate(course.changes):
        apply(change, blocks, tables[0])
        apply(change, one, tables[1])
        check_same(blocks, one, course, number % n_contexts)
    blocks.check()
    one.check()
    assert blocks.stored() == one.stored()
    for context in range(n_contexts):
        check_same(blocks, one, course, context)


def highs(values: Floats, costs: Floats, shares: Floats, caps: Floats, depths: Ints) -> tuple[float, Floats]:
    """The optimum, and what a unit of each cap is worth."""
    n_contexts, n_arms = values.shape
    spend = (shares[:, None] * costs[None, :]).ravel()
    within_caps = [np.where(np.repeat(depths, n_arms) >= d, spend, 0.0) for d in range(caps.size)]
    one_arm = sparse.kron(sparse.eye(n_contexts), np.ones((1, n_arms)))
    table: Any = sparse.vstack([sparse.csr_matrix(np.array(within_caps)), one_arm], format="csr")
    found = linprog(
        -(shares[:, None] * np.where(np.isfinite(values), values, -1.0)).ravel(),
        A_ub=table,
        b_ub=np.concatenate([caps, np.ones(n_contexts)]),
        method="highs",
        options={"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-10},
    )
    assert found.status == 0
    assert found.fun is not None
    return -float(found.fun), -found.ineqlin.marginals[: caps.size]


@pytest.mark.parametrize("left", [(), (0.6,), (0.7, 0.0), (1.0, 0.5)], ids=str)
@pytest.mark.parametrize("unit_costs", [True, False], ids=["unit", "different"])
@pytest.mark.parametrize("n_contexts", [70, 500, 2_000])
def test_many_contexts_after_many_changes(n_contexts: int, unit_costs: bool, left: tuple[float, ...]) -> None:
    """Value and price are the solver's after thousands of changes of values and weights, and with an arm gone."""
    rng = np.random.default_rng(n_contexts + len(left))
    n_arms, n_depths = 6, len(left) + 1
    costs = np.ones(n_arms) if unit_costs else rng.uniform(0.3, 3.0, n_arms)
    depths = rng.integers(0, n_depths, n_contexts)
    pace = Pace(costs, rng.uniform(0.5, 2.0, n_contexts), depths, n_depths)
    values = np.zeros((n_contexts, n_arms))
    for context in range(n_contexts):
        apply(Change(context, values=rng.normal(0.4, 0.5, n_arms)), pace, values)
    for context in rng.integers(n_contexts, size=4_000).tolist():
        apply(Change(context, values=rng.normal(0.4, 0.5, n_arms) * rng.uniform(0.1, 2.0)), pace, values)
        apply(Change(context, weight=float(rng.uniform(0.1, 5.0))), pace, values)
    apply(Change(0, leaving=2), pace, values)
    if n_contexts < 1_000:
        pace.check()
    pace.check_sums()
    assert pace.edges.n_blocks[0] > 1
    caps = np.array(0.3 * np.cumprod([1.0, *left]))
    play = pace.play(caps, n_arms)
    ours = float((pace.shares[:, None] * play * np.where(play > 0.0, values, 0.0)).sum())
    value, worth = highs(values, costs, pace.shares, caps, depths)
    assert ours == pytest.approx(value, abs=TOLERANCE)
    for d in range(n_depths):  # what a tier spends counts against its cap and those above
        if caps[d] > 0.0 and 1.0 not in left:  # else the multiplier is not unique
            context = int(np.flatnonzero(depths == d)[0])
            assert pace.share(caps, context).price == pytest.approx(worth[: d + 1].sum(), abs=1e-7)


def test_many_contexts_that_are_all_alike() -> None:
    """Ties are broken by context, also across blocks."""
    n_contexts, rate = 300, 0.50123
    ours = solve(
        values=np.ones((n_contexts, 2)), costs=np.ones(2), shares=np.full(n_contexts, 1.0 / n_contexts), rate=rate
    )
    wanted = np.clip(rate * n_contexts - np.arange(n_contexts), 0.0, 1.0)
    np.testing.assert_allclose(ours.play[:, 0], wanted, atol=1e-10)


def test_many_hulls_that_are_straight_but_for_rounding() -> None:
    """A context's edges are as steep as each other, up to rounding: they stay in their order."""
    n_contexts, costs = 200, np.arange(1.0, 12.0) / 10.0
    rng = np.random.default_rng(5)
    pace = Pace(costs, np.ones(n_contexts), np.zeros(n_contexts, dtype=np.int64), 1)
    values = np.zeros((n_contexts, costs.size))
    for context in [*range(n_contexts), *rng.integers(n_contexts, size=2_000).tolist()]:
        apply(Change(context, values=costs * rng.integers(1, 9) / 7.0), pace, values)
    pace.check()
    caps = np.array([0.543])
    play = pace.play(caps, costs.size)
    value = highs(values, costs, pace.shares, caps, pace.demand.depth)[0]
    assert float((pace.shares[:, None] * play * values).sum()) == pytest.approx(value, abs=TOLERANCE)


def test_blocks_come_and_go() -> None:
    """All contexts lose their value, and get it back."""
    n_contexts = 400
    rng = np.random.default_rng(3)
    pace = Pace(np.array([1.0, 2.0]), np.ones(n_contexts), np.zeros(n_contexts, dtype=np.int64), 1)
    most = []
    for scale in (1.0, 0.0, 2.0, 1e-3, 0.0):
        for context in rng.permutation(n_contexts).tolist():
            pace.set_values(context, scale * np.array([1.0, 1.5]) * rng.uniform(0.5, 1.0))
        pace.check()
        most.append(int(pace.edges.n_blocks[0]))
    assert most[1] == most[4] == 1
    assert min(most[0], most[2], most[3]) > 10


def test_few_contexts_are_one_block_and_many_are_not() -> None:
    assert new_hulls(np.arange(1.0, 11.0), FEW_CONTEXTS).edges.size.size == 1
    assert new_hulls(np.arange(1.0, 11.0), FEW_CONTEXTS + 1).edges.size.size > 1


@pytest.mark.parametrize("n_contexts", [5, FEW_CONTEXTS, 500])
def test_shares_of_the_more_urgent(n_contexts: int) -> None:
    rng = np.random.default_rng(n_contexts)
    depths = rng.integers(0, 3, n_contexts)
    pace = Pace(np.ones(2), np.ones(n_contexts), depths, 3)
    for context in rng.integers(n_contexts, size=1_000).tolist():
        pace.reweigh(context, float(pace.demand.weight[context]) + 1.0)
    assert pace.demand.total[0] == n_contexts + 1_000
    for depth in range(3):
        wanted = float(pace.shares[depths < depth].sum())
        assert share_above(pace.demand, depth) == pytest.approx(wanted, abs=1e-12)
