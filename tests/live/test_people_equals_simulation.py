"""A campaign that is fed by a tape of people decides as the simulator does, bit for bit, whatever happens to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

import doral
from doral.engine.options import PolicyOptions, make_policy
from doral.engine.state import State
from doral.live.campaign import Campaign
from doral.live.store import Store
from doral.live.views.decision import Decision
from doral.simulation.catalogue.lookup import named_scenario
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.truth import make_truth
from tests.live.checks import adds_up, fold_of, log_is_whole
from tests.live.tapes import RUN, SEED, Feed, same_bits, simulated

ROUNDS = 600
POLICIES = {
    "doral-otf": make_policy("doral-otf"),
    "doral, quick race": make_policy("doral", min_answers=4),
    "splines": make_policy("doral-otf", basis="splines", reservoir=64),
}


class PeopleFeed(Feed):
    """Of those who come, the campaign is told their features and their context."""

    def step(self, campaign: Callable[[], Campaign]) -> Decision:
        self.round += 1
        for decision_id, reward in self.due.pop(self.round, ()):
            campaign().feedback(decision_id, reward)
        who = int(self.tape.context[self.round - 1])
        assert self.truth.people is not None
        context = self.problem.context_names[int(self.truth.people.classes[who])]
        features = self.truth.people.crowd.row(who)
        decision = campaign().decide(context, available=self.available(self.round), features=features)
        self.note(decision, who)
        return decision


def short(name: str, **changes: Any) -> Scenario:
    """With levels in the order in which the simulator knows them; in a campaign it is that of their coming."""
    whole = named_scenario(name)
    problem = dataclasses.replace(whole.problem, horizon=ROUNDS, budget=260.0, deadline=400.0, **changes)
    scenario = dataclasses.replace(whole, problem=problem)
    people = make_truth(scenario, seed=SEED, run=RUN).people
    assert people is not None
    person = [
        doral.Category(one.name, levels=list(dict.fromkeys(people.crowd.columns[one.name].tolist())))
        if isinstance(one, doral.Category)
        else one
        for one in problem.person
    ]
    return dataclasses.replace(scenario, problem=dataclasses.replace(problem, person=tuple(person)))


def differences(one: State, other: State) -> list[str]:
    """Only a simulation numbers people."""
    return [name for name in same_bits(one, other) if name != "people.who"]


def make(store: Store, scenario: Scenario, options: PolicyOptions) -> Campaign:
    return store.create("tape", scenario.problem, policy=options, seed=SEED, clock="rounds")


CASES = [
    (place, name)
    for place in ("people/linear", "people/categories", "people/silent", "people/hybrid")
    for name in POLICIES
    if place != "people/silent" or name != "doral, quick race"  # which does not see silence
]


@pytest.mark.parametrize(("place", "name"), CASES)
def test_the_campaign_decides_as_the_simulator(place: str, name: str, open_store: Callable[[str], Store]) -> None:
    scenario, options = short(place), POLICIES[name]
    campaign = make(open_store("memory://"), scenario, options)
    feed = PeopleFeed(scenario)
    decisions = list(feed.steps(lambda: campaign, ROUNDS))
    player = simulated(options, scenario)
    log = player.outcome(keep_decisions=True).log
    assert log is not None
    names = scenario.problem.arm_names
    played = [(one.round, one.arm) for one in decisions if one.arm is not None]
    assert played == [(round_, names[arm]) for round_, arm in zip(log.round.tolist(), log.arm.tolist(), strict=True)]
    assert len(played) > 100
    assert sum(one.state == "returned" for one in campaign.decisions()) > 20
    assert differences(fold_of(campaign).engine.state, player.state.tree) == []
    campaign._session.close()  # and once more from the log
    assert differences(fold_of(campaign).engine.state, player.state.tree) == []
    adds_up(campaign)
    log_is_whole(campaign)


def test_interrupted_all_the_time(durable_url: str, open_store: Callable[[str], Store]) -> None:
    """Read again before every twentieth event, from the log or from a snapshot."""
    scenario, options = short("people/categories"), POLICIES["doral-otf"]
    campaign = make(open_store(durable_url), scenario, options)
    asked = 0

    def reopened() -> Campaign:
        nonlocal asked
        asked += 1
        if asked % 20 == 0:
            if asked % 40 == 0:
                campaign.save_snapshot()
            campaign._session.close()
        return campaign

    list(PeopleFeed(scenario).steps(reopened, ROUNDS))
    assert differences(fold_of(campaign).engine.state, simulated(options, scenario).state.tree) == []
