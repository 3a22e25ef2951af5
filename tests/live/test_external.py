"""Campaigns for which a model predicts: what is stored, what is learned from the log, decisions as in simulation."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

import doral
from doral.compiled import Block
from doral.engine.setup import PREDICTION_PREFIX
from doral.errors import DoralError, InvalidValue
from doral.live.external import ExternalCampaign
from doral.live.store import Store
from doral.live.views.decision import Decision
from doral.simulation.world import players as external_player
from doral.simulation.world.players import ExternalPlayer
from doral.simulation.world.tape import WORLD, new_tape
from doral.simulation.world.truth import make_truth
from tests.live.people import busy, make_problem


class LeastSquares:
    def fit(self, x: Any, y: Any) -> None:
        self.weights = np.linalg.lstsq(np.column_stack([np.ones(len(x)), x]), y, rcond=None)[0]

    def predict(self, x: Any) -> Any:
        return np.column_stack([np.ones(len(x)), x]) @ self.weights


def model(**more: Any) -> Any:
    return doral.external(LeastSquares(), **{"min_answers": 10, "label": "model", **more})


def made(store: Store, name: str = "kits", **more: Any) -> ExternalCampaign:
    campaign = store.create(name, make_problem(**more), policy=model(), seed=3, clock="rounds")
    assert isinstance(campaign, ExternalCampaign)
    return campaign


def test_predictions_are_stored_and_the_log_needs_no_model(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path / 'kits.db'}"
    with doral.open(url) as store:
        campaign = made(store)
        decisions = busy(campaign, 400)
        assert campaign._models.n_fits > 6
        first, last = decisions[0].features, decisions[-1].features
        assert first is not None
        assert last is not None
        assert {name: first[name] for name in first if name.startswith(PREDICTION_PREFIX)} == dict.fromkeys(
            [f"{PREDICTION_PREFIX}a0", f"{PREDICTION_PREFIX}a1", f"{PREDICTION_PREFIX}a2"]
        )
        assert any(isinstance(last[f"{PREDICTION_PREFIX}{arm}"], float) for arm in ("a0", "a1", "a2"))
    with doral.open(url) as store:
        plain = store.campaign("kits")
        assert [one.arm for one in plain.decisions()] == [one.arm for one in decisions]
        assert plain.verify().differences == ()
        again = store.campaign("kits", model=model())
        assert isinstance(again, ExternalCampaign)
        told = again.decide(features={"age": 50, "clinic": "west", "km": 3}).features
        assert told is not None
        assert {name for name in told if told[name] is None} <= {name for name in last if last[name] is None}
        assert again.refit() == 0  # it was fitted on the log before it was first asked


def test_where_nobody_says_no_only_old_decisions_are_known() -> None:
    with doral.open("memory://") as store:
        campaign = made(store, feedback="silent")
        decisions = [one for one in busy(campaign, 200) if one.arm is not None]
        known = campaign._known()
        assert known.rewards.size == sum(200 - one.decided_at > 60 for one in decisions) > 10
        assert 0 < (known.rewards == 0.0).sum() < known.rewards.size


def test_a_key_gives_the_decision_back_whatever_the_model_says_by_now() -> None:
    with doral.open("memory://") as store:
        campaign = made(store)
        busy(campaign, 150)
        somebody = {"age": 50, "clinic": "west", "km": 3}
        one = campaign.decide(features=somebody, key="visit")
        busy(campaign, 150, seed=2)
        again, new = campaign.decide_many(
            [{"features": somebody, "key": "visit"}, {"features": somebody, "key": "another"}]
        )
        assert again == one
        assert new.features != one.features


def test_decisions_with_a_result_each_are_predicted_for_too() -> None:
    with doral.open("memory://") as store:
        campaign, single = made(store), made(store, "single")
        busy(campaign, 100)
        busy(single, 100)
        somebody = {"age": 50, "clinic": "west", "km": 3}
        visit: dict[str, Any] = {"features": somebody, "key": "visit"}
        arrivals: list[Any] = [visit, {"features": {"height": 3}}, 7, visit]
        first, nobody, number, again = campaign.decide_each(arrivals)
        alone = single.decide(**visit)
        assert isinstance(first, Decision)
        assert (first.arm, first.features) == (alone.arm, alone.features)
        assert again == first
        assert isinstance(nobody, DoralError)
        assert isinstance(number, InvalidValue)


def test_predictions_can_be_given_by_hand() -> None:
    with doral.open("memory://") as store:
        made(store)
        campaign = store.campaign("kits")
        person = {"age": 50, "clinic": "west", "km": 3}
        told = campaign.decide(
            features={**person, f"{PREDICTION_PREFIX}a0": 0.5, f"{PREDICTION_PREFIX}a1": 0.25}
        ).features
        assert told == {
            **person,
            f"{PREDICTION_PREFIX}a0": 0.5,
            f"{PREDICTION_PREFIX}a1": 0.25,
            f"{PREDICTION_PREFIX}a2": None,
        }


@pytest.mark.parametrize("arrivals", [[7], [None], [["old"]], [{"context": []}], [{"features": 3}], 7, None])
def test_arrivals_of_another_type_are_refused(arrivals: Any) -> None:
    with doral.open("memory://") as store:
        campaign = made(store)
        before = campaign.report().events
        for ask in (campaign.decide_many, campaign.prepared):
            with pytest.raises(DoralError):
                ask(arrivals)
        assert campaign.report().events == before


def test_what_is_refused() -> None:
    with doral.open("memory://") as store:
        campaign = made(store)
        with pytest.raises(InvalidValue, match="'km'.*is missing"):
            campaign.decide(features={"age": 50, "clinic": "west"})
        with pytest.raises(InvalidValue, match="missing='mean'"):
            store.create("other", make_problem(missing="mean"), policy=model())
        store.create("plain", make_problem(), clock="rounds")
        with pytest.raises(InvalidValue, match="takes no predictions"):
            store.campaign("plain", model=model())
        with pytest.raises(InvalidValue, match="must be a doral.external"):
            store.campaign("kits", model=LeastSquares())  # type: ignore[arg-type]


def test_an_arm_that_comes_later_is_left_to_the_engine() -> None:
    with doral.open("memory://") as store:
        campaign = made(store)
        busy(campaign, 200)
        campaign.add_arm(doral.Arm("new", features=[0.5], cost=1.0))
        assert {one.arm for one in busy(campaign, 200, seed=5)} >= {"new"}
        assert store.campaign("kits").verify().differences == ()


def test_a_campaign_decides_as_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that is asked one by one says the same to the bit, and so everything else follows."""
    monkeypatch.setattr(external_player, "BATCH", 1)
    scenario = doral.scenario("people/linear")
    problem = dataclasses.replace(scenario.problem, horizon=1_500, budget=600)
    scenario = dataclasses.replace(scenario, problem=problem)
    truth = make_truth(scenario, seed=4, run=0)
    player = ExternalPlayer(model(), scenario, truth, seed=4, run=0)
    tape = new_tape(truth.world, 1_500)
    WORLD["record"](Block(tape), truth.block, 4, 0, 1)
    player.play(tape, 1)
    entries = player._book.tree.entries[: player._book.tree.counts["decisions"][0]].tolist()
    by_round = {entry[2]: entry for entry in entries}
    due: dict[int, list[tuple[str, float]]] = {}
    assert truth.people is not None
    with doral.open("memory://") as store:
        campaign = store.create("kits", problem, policy=model(), seed=4, clock="rounds")
        for round_, who in enumerate(tape.context.tolist(), start=1):
            for decision, reward in due.pop(round_, []):
                campaign.feedback(decision, reward, at=round_)
            one = campaign.decide(features=truth.people.crowd.row(who))
            entry = by_round.get(round_)
            assert one.arm == (None if entry is None else problem.arm_names[entry[4]])
            if entry is not None and entry[1] < 1_500:
                due.setdefault(round_ + int(entry[1]), []).append((one.id, entry[0]))
        assert isinstance(campaign, ExternalCampaign)
        assert campaign._models.n_fits == player.models.n_fits > 20
