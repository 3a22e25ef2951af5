"""Policies that learn, valued by what they settle on."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import doral
from doral.cli.app import app
from doral.errors import InvalidValue
from doral.evaluation.evaluate import Settled, _learner
from doral.inference.log_problem import spent
from tests.inference.test_cells import kits
from tests.logs import HOUR, file_of, log_of


def test_what_a_policy_settles_on_is_what_it_ought_to_do() -> None:
    """Rewards are sure and clear: who knows them gives `b` in x and `a` in y, as far as the money goes."""
    scenario = kits(means=[[0.0, 1.0], [1.0, 0.0]], noise="none", delays=doral.delays.Fixed(2))
    log = log_of(scenario, "status-quo", watched_after=60.0)
    settled = Settled(policy=doral.policy("doral-otf"), rate=2.0, arrivals=len(log), deadline=60 * HOUR, seed=0)
    table = settled.allocation(log)
    assert table.sum(axis=1) == pytest.approx(1.0)
    assert table[0, 1] > 0.95
    assert table[1, 0] > 0.95


def test_a_policy_of_doral_is_valued_beside_rules() -> None:
    log = log_of(kits(means=[[0.1, 0.6], [0.5, 0.1]]), "status-quo")
    found = doral.evaluate(log, ["doral-otf", "lp", "uniform"], deadline="60h")
    assert found.policies == ("status-quo", "doral-otf", "lp", "uniform")
    one = found.of("doral-otf")
    assert one.difference_low > 0.0
    assert abs(one.value - found.of("lp").value) < 0.1
    assert one.cost <= 1.15 * found.of("status-quo").cost
    with pytest.raises(InvalidValue, match="knows the truth"):
        doral.evaluate(log, "oracle")
    assert np.isfinite(one.low)


def test_what_is_open_and_paid_on_answer_is_not_taken_for_paid() -> None:
    """Half of the log is young: nobody has paid for it yet, and of the rest a part is never paid."""
    log = log_of(kits(delays=doral.delays.Geometric(mean=200)), "status-quo")
    paid = np.where(log.is_answered, np.nan_to_num(log.reward) * log.cost, np.nan)
    paid[~log.is_served] = 0.0
    made = _learner("random", replace(log, paid=paid, paid_when="on_answer"), deadline="60h", budget=None, seed=0)
    assert made.rate == pytest.approx(spent(replace(log, paid=paid, paid_when="on_answer")) / len(log))
    assert made.rate < 0.6 * float(log.cost.mean())


def test_the_command_reads_values_and_refuses(tmp_path: Path) -> None:
    path, out = tmp_path / "log.csv", tmp_path / "out.json"
    file_of(log_of(kits(), "status-quo")).write_csv(path)
    runner = CliRunner()
    shown = runner.invoke(app, ["evaluate", str(path), "-p", "uniform", "-p", "always:b", "--deadline", "60h"])
    assert shown.exit_code == 0, shown.output
    assert "always:b" in shown.output
    kept = runner.invoke(app, ["evaluate", str(path), "-p", "lp", "--out", str(out), "--plot", str(tmp_path / "a.png")])
    assert kept.exit_code == 0, kept.output
    assert out.exists()
    assert (tmp_path / "a.png").stat().st_size > 1_000
    for words in (["-p", "nonsense"], ["--deadline", "soon"], ["--budget", "-1"], ["--propensities", "maybe"]):
        refused = runner.invoke(app, ["evaluate", str(path), *words])
        assert refused.exit_code == 2, (words, refused.output)
        assert "Traceback" not in refused.output
