"""What is advised can be run as it is written, and the first sentence says what it compares."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import doral
from doral.cli.planning import command_of
from doral.planning.campaign import create_campaign
from doral.planning.folder import policy_dict
from doral.planning.recommending import preset_of
from tests.planning.test_campaign_from_plan import a_file


def planned(**asked: Any) -> doral.Plan:
    return doral.plan(a_file(), deadline="60h", truths=2, **asked)


CHANGED = [doral.policy("doral", accept=2), doral.policy("doral-otf", label="mine", explore=0.1)]


@pytest.mark.parametrize("made", CHANGED)
def test_options_of_what_is_advised_are_kept(made: Any) -> None:
    plan = planned(policies=[made])
    written = policy_dict(plan)
    again = doral.policy(written["policy"], label=made.name, **written["options"])
    assert again == made
    assert create_campaign(plan, "memory://", "mine").report().policy.startswith(written["policy"])


def test_every_preset_is_found_again() -> None:
    for name in ("doral", "doral-otf", "d-alp", "d-linucb", "random", "doral/literal"):
        assert preset_of(doral.policy(name)) == (name, ())


@pytest.mark.parametrize("policy", ["oracle", "a/b"])
def test_without_a_policy_that_can_run_what_is_done_today_is_told(policy: str) -> None:
    plan = planned(policies=[policy])
    assert plan.answer[0].startswith("With the same budget, what is done today brings")
    assert "It did not play" in plan.recommendation.reasons[0]


def test_the_same_budget_is_said_only_of_the_same_budget() -> None:
    assert "with the same budget," in planned(policies=["doral-otf"]).answer[0].lower()
    longer = planned(policies=["doral-otf"], horizon=600).answer[0]
    assert "the same budget per arrival (" in longer
    assert "that today's way would bring" in longer
    assert "a budget of 50" in planned(policies=["doral-otf"], budget=50).answer[0]


def test_the_command_on_the_page_has_every_digit() -> None:
    words = command_of(Path("x.csv"), {}, {"budget": 1234567.89, "horizon": 600}, policies=[], seed=0)
    assert "--budget 1234567.89 " in words
    assert command_of(Path("x.csv"), {}, {"budget": 500.0}, policies=[], seed=0).split()[3:5] == ["--budget", "500"]


def test_two_days_are_drawn_without_a_warning(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doral.plan(a_file().head(50), policies=["random"], truths=2).save(tmp_path)
