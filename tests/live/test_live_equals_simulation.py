"""The keystone: a campaign that is fed by a tape decides as the simulator does, bit for bit, whatever happens to it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

import doral
from doral.engine.options import PolicyOptions, make_policy
from doral.live.campaign import Campaign
from doral.live.runtime.replay import replay
from doral.live.runtime.session import Session
from doral.live.state.snapshot import decode_snapshot as decode
from doral.live.state.snapshot import encode_snapshot as encode
from doral.live.store import Store
from doral.live.views.decision import Decision
from doral.simulation.scenario.scenario import Scenario
from doral.simulation.world.players import CompiledPlayer
from tests.live.checks import fold_of
from tests.live.tapes import BASELINES, SCENARIOS, SEED, UNIT, Feed, live_policies, same_bits, simulated

CASES = [(place, name) for place, scenario in SCENARIOS.items() for name in live_policies(scenario)]


def short(scenario: Scenario, horizon: int) -> Scenario:
    problem = dataclasses.replace(scenario.problem, horizon=horizon)
    return dataclasses.replace(scenario, problem=problem)


def make(store: Store, scenario: Scenario, options: PolicyOptions) -> Campaign:
    return store.create("tape", scenario.problem, policy=options, seed=SEED, clock="rounds")


def assert_same_decisions(player: CompiledPlayer, decisions: list[Decision], scenario: Scenario) -> None:
    log = player.outcome(keep_decisions=True).log
    assert log is not None
    names = scenario.problem.arm_names
    played = [(one.round, one.arm) for one in decisions if one.arm is not None]
    assert played == [(round_, names[arm]) for round_, arm in zip(log.round.tolist(), log.arm.tolist(), strict=True)]
    assert [one.round for one in decisions] == list(range(1, scenario.problem.horizon + 1))


@pytest.mark.parametrize(("place", "name"), CASES)
def test_the_campaign_decides_as_the_simulator(place: str, name: str, open_store: Callable[[str], Store]) -> None:
    scenario = SCENARIOS[place]
    options = live_policies(scenario)[name]
    campaign = make(open_store("memory://"), scenario, options)
    decisions = list(Feed(scenario).steps(lambda: campaign, scenario.problem.horizon))
    player = simulated(options, scenario)
    assert_same_decisions(player, decisions, scenario)
    assert same_bits(fold_of(campaign).engine.state, player.state.tree) == []
    fold_of(campaign).check()
    assert len({one.id for one in decisions}) == len(decisions)


@pytest.mark.parametrize("name", ["doral-otf", "doral, quick race", "d-lints"])
@pytest.mark.parametrize("place", list(BASELINES))
def test_those_who_are_skipped_are_answered_as_in_the_simulator(
    place: str, name: str, open_store: Callable[[str], Store]
) -> None:
    scenario = BASELINES[place]
    options = live_policies(scenario)[name]
    campaign = make(open_store("memory://"), scenario, options)
    decisions = list(Feed(scenario).steps(lambda: campaign, scenario.problem.horizon))
    player = simulated(options, scenario)
    assert same_bits(fold_of(campaign).engine.state, player.state.tree) == []
    fold_of(campaign).check()
    log = player.outcome(keep_decisions=True).log
    assert log is not None
    names: list[str | None] = list(scenario.problem.arm_names)
    if place == "watched":
        names[5] = None  # nobody has given that arm
    assert [one.arm for one in decisions] == [names[arm] for arm in log.arm.tolist()]
    assert {one.state for one in decisions} == {"pending"}
    campaign._session.close()  # and once more from the log
    assert same_bits(fold_of(campaign).engine.state, player.state.tree) == []


@pytest.mark.parametrize(("place", "name"), [("unit", "doral, quick race"), ("mixed", "doral, quick race")])
def test_on_every_storage(place: str, name: str, store: Store) -> None:
    scenario = short(SCENARIOS[place], 150)
    options = live_policies(scenario)[name]
    campaign = make(store, scenario, options)
    decisions = list(Feed(scenario).steps(lambda: campaign, 150))
    player = simulated(options, scenario)
    assert_same_decisions(player, decisions, scenario)
    assert same_bits(fold_of(campaign).engine.state, player.state.tree) == []
    assert list(campaign.decisions()) != []


@pytest.mark.parametrize("name", list(live_policies(UNIT)))
@pytest.mark.parametrize(("place", "rounds"), [("unit", 45), ("mixed", 90)])  # in 90 of the one, no race ends either
def test_reopened_before_every_event(place: str, rounds: int, name: str, open_store: Callable[[str], Store]) -> None:
    scenario = short(SCENARIOS[place], rounds)
    options = live_policies(SCENARIOS[place])[name]
    campaign = make(open_store("memory://"), scenario, options)

    def reopened() -> Campaign:
        campaign._session.close()  # the state is gone: the next event folds the log from its beginning
        return campaign

    decisions = list(Feed(scenario).steps(reopened, rounds))
    player = simulated(options, scenario)
    assert_same_decisions(player, decisions, scenario)
    assert same_bits(fold_of(reopened()).engine.state, player.state.tree) == []


def test_a_new_store_for_every_event(durable_url: str, open_store: Callable[[str], Store]) -> None:
    scenario = short(SCENARIOS["mixed"], 60)
    options = live_policies(scenario)["doral, quick race"]
    with doral.open(durable_url) as store:
        make(store, scenario, options)

    stores: list[Store] = []

    def reopened() -> Campaign:
        while stores:
            stores.pop().close()
        stores.append(open_store(durable_url))
        return stores[0].campaign("tape")

    decisions = list(Feed(scenario).steps(reopened, 60))
    player = simulated(options, scenario)
    assert_same_decisions(player, decisions, scenario)
    assert same_bits(fold_of(reopened()).engine.state, player.state.tree) == []


@pytest.mark.parametrize("name", ["doral", "doral, quick race", "d-linucb", "random", "min_age", "kaplan_meier"])
@pytest.mark.parametrize("place", ["unit", "mixed"])
def test_restored_from_any_snapshot(place: str, name: str, open_store: Callable[[str], Store]) -> None:
    scenario = SCENARIOS[place]
    options = live_policies(scenario)[name]
    campaign = make(open_store("memory://"), scenario, options)
    feed = Feed(scenario)
    snapshots: list[bytes] = []
    for _ in range(scenario.problem.horizon):
        feed.step(lambda: campaign)
        if feed.round % 13 == 1:
            snapshots.append(encode(fold_of(campaign)))
    whole = fold_of(campaign)
    for data in snapshots:
        restored = decode(data, whole.definition, whole.names.tag)
        replay(restored, campaign._session.read(lambda log, _: log.after(restored.sequence)))  # noqa: B023
        assert same_bits(restored.engine.state, whole.engine.state) == []
        assert restored.to_json() == whole.to_json()


def test_snapshots_are_written_and_used(durable_url: str, open_store: Callable[[str], Store]) -> None:
    scenario = short(SCENARIOS["unit"], 120)
    options = make_policy("doral", min_answers=4)
    campaign = make(open_store(durable_url), scenario, options)
    campaign._session.reader.snapshot_every = 25
    feed = Feed(scenario)
    for _ in feed.steps(lambda: campaign, 120):
        pass
    kept = campaign._session.read(lambda log, _: log.snapshots())
    assert len(kept) == 2
    assert 0 < kept[1] < kept[0] <= fold_of(campaign).sequence < kept[0] + 100
    again = open_store(durable_url).campaign("tape")
    assert same_bits(fold_of(again).engine.state, fold_of(campaign).engine.state) == []
    assert fold_of(again).to_json() == fold_of(campaign).to_json()
    assert again._session.reader.saved_at == kept[0]


def test_batches_are_the_same_as_one_at_a_time(open_store: Callable[[str], Store]) -> None:
    scenario = SCENARIOS["unit"]
    contexts = [scenario.problem.context_names[j] for j in Feed(scenario).tape.context.tolist()]
    one_by_one = make(open_store("memory://"), scenario, make_policy("doral"))
    together = make(open_store("memory://"), scenario, make_policy("doral"))
    for start in range(0, len(contexts), 50):
        some = contexts[start : start + 50]
        alone = [one_by_one.decide(context) for context in some]
        batch = together.decide_many(some)
        assert [one.arm for one in alone] == [one.arm for one in batch]
        answers = [(a.id, b.id, 0.01 * (start + i)) for i, (a, b) in enumerate(zip(alone, batch, strict=True)) if a.arm]
        for first, _, reward in answers[::2]:
            one_by_one.feedback(first, reward)
        together.feedback_many([(second, reward) for _, second, reward in answers[::2]])
    assert same_bits(fold_of(one_by_one).engine.state, fold_of(together).engine.state) == []


def test_a_file_can_be_moved_while_nobody_has_it_open(tmp_path: Path, open_store: Callable[[str], Store]) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'one.db'}")
    made = make(store, UNIT, make_policy("d-linucb")).decide("ann")
    store.close()
    (tmp_path / "one.db").rename(tmp_path / "two.db")
    assert open_store(f"sqlite:///{tmp_path / 'two.db'}").campaign("tape").decision(made.id) == made


def test_sessions_are_not_shared_between_stores(open_store: Callable[[str], Store]) -> None:
    assert open_store("memory://").list() == open_store("memory://").list() == []
    assert isinstance(make(open_store("memory://"), UNIT, make_policy("random"))._session, Session)
