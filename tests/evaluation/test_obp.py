"""Against Open Bandit Pipeline, where both do the same: the same log, policy and expectations, no censoring."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doral
from doral.evaluation.censoring import Censoring
from doral.evaluation.valuing import ESTIMATORS, Weighted, contributions
from doral.logs.clock import Clock
from doral.logs.log import Log, Reading
from tests.evaluation.make_obp_reference import N_ARMS, N_CONTEXTS, inputs

REFERENCE: dict[str, Any] = json.loads(Path(__file__).with_name("obp_reference.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("said", REFERENCE["values"], ids=lambda one: f"seed {one['seed']}")
def test_estimators_agree_with_open_bandit_pipeline(said: dict[str, float]) -> None:
    log = inputs(int(said["seed"]))
    context, arm = log["context"], log["arm"]
    n = context.size
    rows = Weighted(
        weight=log["policy"][context, arm] / log["probability"],
        served=np.ones(n),
        amount=log["reward"],
        of_done=log["expected"][context, arm],
        of_policy=(log["policy"] * log["expected"]).sum(axis=1)[context],
    )
    whole = Censoring(is_complete=np.ones(n, dtype=bool), age=np.zeros(n), watched=np.zeros(n))
    for one in ESTIMATORS:
        assert contributions(one, rows, whole).mean() == pytest.approx(said[one], abs=1e-10), one


@pytest.mark.parametrize("said", REFERENCE["values"], ids=lambda one: f"seed {one['seed']}")
def test_evaluate_agrees_where_nothing_has_to_be_learned(said: dict[str, float]) -> None:
    known = inputs(int(said["seed"]))
    n = known["context"].size
    log = Log(
        name="obp",
        arms=tuple(f"a{one}" for one in range(N_ARMS)),
        contexts=tuple(f"c{one}" for one in range(N_CONTEXTS)),
        clock=Clock("rounds", "rounds"),
        start=None,
        time=np.arange(n, dtype=np.float64),
        context=known["context"].astype(np.int64),
        arm=known["arm"].astype(np.int64),
        reward=known["reward"],
        delay=np.zeros(n),
        watched=np.zeros(n),
        cost=np.ones(n),
        paid=np.ones(n),
        probability=known["probability"],
        feedback="explicit",
        paid_when="always",
        has_delays=False,
        reading=Reading(rows=n, columns=()),
    )
    table = np.hstack([known["policy"], np.zeros((N_CONTEXTS, 1))])
    result = doral.evaluate(log, ("theirs", table))
    for one in ("ips", "snips"):
        assert result.of("theirs", one).value == pytest.approx(said[one], abs=1e-10)
