"""What is advised can be run as it is written, and the first sentence says what it compares."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import doral
from doral.cli.plan import command_of
from doral.planning.campaign import create_campaign
from doral.planning.recommendation import can_run_live, preset_of
from doral.planning.report.folder import policy_dict
from doral.simulation.rivals.rival import NAMES, named_policy
from tests.planning.test_campaign_from_plan import a_file


def planned(**asked: Any) -> doral.Plan:
    return doral.plan(a_file(), deadline="60h", truths=2, **asked)


CHANGED = [doral.policy("doral", accept=2), doral.policy("doral-otf", label="mine", explore=0.1)]


@pytest.mark.parametrize("made", CHANGED)
def test_options_of_what_is_recommended_are_kept(made: Any) -> None:
    plan = planned(policies=[made])
    preset, options = preset_of(made)
    advised = replace(plan.recommendation, policy=made.name, preset=preset, options=options)
    plan = replace(plan, recommendation=advised)
    written = policy_dict(plan)
    again = doral.policy(written["policy"], label=made.name, **written["options"])
    assert again == made
    assert create_campaign(plan, "memory://", "mine").report().policy.startswith(written["policy"])


def test_every_preset_is_found_again() -> None:
    for name in ("doral", "doral-otf", "d-alp", "d-linucb", "random", "doral/literal"):
        assert preset_of(doral.policy(name)) == (name, ())


@pytest.mark.parametrize("policy", ["oracle", "a/b"])
def test_without_a_policy_that_can_run_the_plan_says_to_go_on_as_today(policy: str, tmp_path: Path) -> None:
    plan = planned(policies=[policy])
    assert plan.answer[0].startswith("Go on as today. With the same budget")
    assert "can run live" in plan.recommendation.reasons[0]
    assert plan.recommendation.policy is None
    assert policy_dict(plan)["policy"] is None
    page = plan.save(tmp_path).read_text(encoding="utf-8")
    assert "doral campaign create" not in page


def test_a_campaign_takes_policies_that_do_not_need_the_truth() -> None:
    problem = planned(policies=["random"]).problem
    able = {name: can_run_live(named_policy(name), problem, has_seconds=True) for name in NAMES}
    assert able["doral-otf"]
    assert able["random"]
    assert not any(able[name] for name in ("oracle", "a/b", "status-quo"))


def test_the_same_budget_is_said_only_of_the_same_budget() -> None:
    assert "with the same budget (" in planned(policies=["doral-otf"]).answer[0].lower()
    longer = planned(policies=["doral-otf"], horizon=600).answer[0]
    assert "the same budget per arrival (" in longer
    assert "a budget of 50" in planned(policies=["doral-otf"], budget=50).answer[0]


def test_the_command_on_the_page_has_every_digit() -> None:
    words = command_of(Path("x.csv"), {}, {"budget": 1234567.89, "horizon": 600}, policies=[], seed=0)
    assert "--budget 1234567.89 " in words
    assert command_of(Path("x.csv"), {}, {"budget": 500.0}, policies=[], seed=0).split()[3:5] == ["--budget", "500"]


def test_two_days_are_drawn_without_a_warning(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        doral.plan(a_file().head(50), policies=["random"], truths=2).save(tmp_path)
