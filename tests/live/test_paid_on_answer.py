"""Campaigns whose decisions cost only where something comes of them: as the simulator, to the bit, and to the cent."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from doral.delays import Geometric
from doral.engine.options import make_policy
from doral.errors import InvalidValue
from doral.live.campaign import Campaign
from doral.live.runtime.replay import replay
from doral.live.state.snapshot import decode_snapshot as decode
from doral.live.state.snapshot import encode_snapshot as encode
from doral.live.store import Store
from doral.live.views.decision import Decision
from doral.problem import Arm, Problem
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.tape import is_taken_up
from tests.engine.cases import OFFERS, SILENT_OFFERS, SOME_PAID
from tests.live.checks import fold_of
from tests.live.tapes import SEED, Feed, same_bits, simulated

SCENARIOS = {"offers": OFFERS, "silent": SILENT_OFFERS, "some paid": SOME_PAID}
POLICIES = {
    "learned": make_policy("doral-otf"),
    "list": make_policy("doral-otf", cost="list"),
    "d-linucb": make_policy("d-linucb"),
}


class PayingFeed(Feed):
    """Answers say what was paid, and whoever has not answered by the deadline has lapsed."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self.costs: dict[str, float] = {}
        self.lapses: set[int] = set()

    def step(self, campaign: Callable[[], Campaign]) -> Decision:
        self.round += 1
        for decision_id, reward in self.due.pop(self.round, ()):
            if self.problem.feedback == "silent" and reward == 0.0:
                continue  # nobody says no
            campaign().feedback(decision_id, reward, actual_cost=self.costs.get(decision_id))
        if self.round in self.lapses:
            assert campaign().expire() > 0
        context = int(self.tape.context[self.round - 1])
        decision = campaign().decide(self.problem.context_names[context])
        self.note(decision, context)
        return decision

    def note(self, decision: Decision, context: int) -> None:
        super().note(decision, context)
        if decision.arm is None:
            return
        arm, deadline = self.problem.arm_index(decision.arm), float(self.problem.deadlines[context])
        found = [(day, reward) for day, due in self.due.items() for one, reward in due if one == decision.id]
        is_heard = bool(found) and found[0][0] - self.round <= deadline
        if not is_heard or (self.problem.feedback == "silent" and found[0][1] == 0.0):
            self.lapses.add(self.round + int(deadline) + 1)
            self.due = {day: [one for one in due if one[0] != decision.id] for day, due in self.due.items()}
            return
        payment = float(self.tape.payment[self.round - 1]) if self.tape.payment.size else 0.0
        if not is_taken_up(self.truth.world.payments, context, arm, found[0][1], payment):
            self.costs[decision.id] = 0.0


def make(store: Store, scenario: Scenario, name: str = "learned") -> Campaign:
    return store.create("tape", scenario.problem, policy=POLICIES[name], seed=SEED, clock="rounds")


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("place", SCENARIOS)
def test_the_campaign_decides_as_the_simulator(place: str, name: str, open_store: Callable[[str], Store]) -> None:
    scenario = _without_late_answers(SCENARIOS[place])
    campaign = make(open_store("memory://"), scenario, name)
    feed, snapshots = PayingFeed(scenario), []
    played = []
    for one in feed.steps(lambda: campaign, scenario.problem.horizon):
        if one.arm is not None:
            played.append((one.round, one.arm))
        if feed.round % 61 == 1:
            snapshots.append(encode(fold_of(campaign)))
    player = simulated(POLICIES[name], scenario)
    outcome = player.outcome(keep_decisions=True)
    assert outcome.log is not None
    names = scenario.problem.arm_names
    log = zip(outcome.log.round.tolist(), outcome.log.arm.tolist(), strict=True)
    assert played == [(round_, names[arm]) for round_, arm in log]
    assert same_bits(fold_of(campaign).engine.state, player.state.tree) == []
    fold_of(campaign).check()
    whole = fold_of(campaign)
    for data in snapshots:
        restored = decode(data, whole.definition, whole.names.tag)
        replay(restored, campaign._session.read(lambda log, _: log.after(restored.sequence)))  # noqa: B023
        assert same_bits(restored.engine.state, whole.engine.state) == []
        assert restored.to_json() == whole.to_json()
    campaign._session.close()  # from the log alone
    assert same_bits(fold_of(campaign).engine.state, player.state.tree) == []


def _without_late_answers(scenario: Scenario) -> Scenario:
    """An answer after its deadline is of no consequence for money, but its curve hears of it: both must, or none."""
    return dataclasses.replace(scenario, delays=(tuple(Geometric(mean) for mean in (2, 3, 2, 4, 3)),))


def offers(**changes: Any) -> Problem:
    given: dict[str, Any] = {
        "arms": [Arm("bonus", features=[1.0], cost={"new": 10, "old": 4.5}), Arm("letter", features=[2.0], cost=0)],
        "contexts": ["new", "old"],
        "budget": 100,
        "horizon": 50,
        "deadline": 5,
        "paid": "on_answer",
    }
    return Problem(**(given | changes))


def only(arm: str, campaign: Campaign, context: str) -> Decision:
    found = campaign.decide(context, available=[arm])
    assert found.arm == arm
    return found


def test_money_comes_back(open_store: Callable[[str], Store]) -> None:
    campaign = open_store("memory://").create("c", offers(), policy="d-linucb", clock="rounds")
    one, two, three = (only("bonus", campaign, context) for context in ("new", "old", "new"))
    free = only("letter", campaign, "old")
    assert (one.cost, two.cost, free.cost) == (10.0, 4.5, 0.0)
    assert campaign.ledger().left == Decimal("75.5")
    campaign.feedback(one.id, 1.0, actual_cost=10)
    campaign.feedback(two.id, 0.0, actual_cost=0)
    assert (campaign.ledger().left, campaign.ledger().spent) == (Decimal("80.0"), Decimal(10))
    campaign.correct(one.id, 1.0, actual_cost=7.5)
    assert campaign.ledger().spent == Decimal("7.5")
    campaign.cancel(free.id)
    for _ in range(8):
        campaign.decide("old", available=[])
    assert campaign.expire() == 1  # three: nothing is paid for what is not answered
    assert campaign.decision(three.id).actual_cost == 0.0
    assert campaign.ledger().spent == Decimal("7.5")
    fold_of(campaign).check()
    report = campaign.report()
    assert (report.reserve, report.is_paid_on_answer) == (1.0, True)
    assert "the budget holds whatever is paid" in str(report)
    assert "plays at 4.5 to 10" in str(report)


def test_what_expires_is_spent_unless_costs_are_paid_on_answer(open_store: Callable[[str], Store]) -> None:
    """The problem says so, whoever calls first."""
    store = open_store("memory://")
    for name, paid, spent in (("a", "always", 10), ("b", "on_answer", 0)):
        campaign = store.create(name, offers(paid=paid), policy="d-linucb", clock="rounds")
        only("bonus", campaign, "new")
        for _ in range(8):
            campaign.decide("old", available=[])
        assert campaign.expire() == 1
        assert campaign.ledger().spent == spent


def test_a_likely_reserve_lends_what_will_come_back(open_store: Callable[[str], Store]) -> None:
    """Once hardly any offer is taken up, more are open than the budget could pay at list price."""
    problem = offers(budget=200, horizon=600, deadline=60, reserve=0.9)
    campaign = open_store("memory://").create("c", problem, policy="doral-otf", clock="rounds")
    waiting: list[tuple[int, Decision]] = []
    lowest = Decimal(0)
    for round_ in range(500):
        while waiting and waiting[0][0] <= round_:
            _, one = waiting.pop(0)
            paid = one.round % 50 == 0
            campaign.feedback(one.id, float(paid), actual_cost=one.cost if paid else 0.0)
        one = campaign.decide("new", available=["bonus"])
        if one.arm is not None:
            waiting.append((round_ + 50, one))
        lowest = min(lowest, campaign.ledger().left)
    assert lowest < 0
    fold_of(campaign).check()
    report = campaign.report()
    assert report.reserve == 0.9
    assert report.coming_back > 0.0
    assert "holds what is paid with probability 0.9" in str(report)
    assert campaign.ledger().spent <= 200
    state = fold_of(campaign).engine.state
    campaign._session.close()
    assert same_bits(fold_of(campaign).engine.state, state) == []


def test_an_arm_is_added_with_costs_by_context(open_store: Callable[[str], Store]) -> None:
    campaign = open_store("memory://").create("c", offers(budget=1000), policy="doral-otf", clock="rounds")
    first = only("bonus", campaign, "new")
    campaign.feedback(first.id, 0.0, actual_cost=0)
    campaign.add_arm(Arm("voucher", features=[0.5], cost={"new": 2, "old": 3}))
    assert [only("voucher", campaign, context).cost for context in ("new", "old")] == [2.0, 3.0]
    fold_of(campaign).check()
    before = fold_of(campaign).engine.state
    campaign._session.close()
    assert same_bits(fold_of(campaign).engine.state, before) == []


@pytest.mark.parametrize(("reward", "is_worth_it"), [(1.0, False), (70.0, True)])
def test_money_is_kept_back(reward: float, is_worth_it: bool, open_store: Callable[[str], Store]) -> None:
    """0.1 or 7 per unit, where 0.5 is asked for: nothing is asked before anything is known, in whatever units."""
    arms = [Arm("dear", features=[1.0], cost=10), Arm("dearer", features=[1.0], cost=11)]
    problem = Problem(arms=arms, contexts=["all"], budget=1e6, horizon=2000, deadline=3, return_at_least=0.5)
    campaign = open_store("memory://").create("c", problem, policy="doral-otf", clock="rounds")
    decisions = []
    for round_ in range(400):
        one = campaign.decide("all")
        decisions.append(one)
        if one.arm is not None:
            campaign.feedback(one.id, reward * (1.0 + 0.1 * (round_ % 3)))
    assert all(one.arm is not None for one in decisions[:100])
    assert sum(one.arm is not None for one in decisions[200:]) > 190 if is_worth_it else decisions[-1].arm is None
    if not is_worth_it:
        assert sum(one.arm is not None for one in decisions[200:]) < 20
        assert decisions[-1].reason_code == "worthless"


def test_a_reserve_needs_something_that_comes_back() -> None:
    with pytest.raises(InvalidValue, match="^reserve = 0.9: must be 1 where costs are always paid"):
        offers(paid="always", reserve=0.9)
