"""Logs that say little: every question has an answer in words, without a traceback, a warning or a NaN."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from doral.logs.clock import Clock
from doral.logs.log import Log
from doral.planning.curves import return_curves
from doral.planning.questions import findings
from doral.planning.responsiveness import responsiveness
from doral.planning.tails import delay_tails
from doral.planning.values import nothing_done, prices
from doral.planning.waiting import deadline_of, waiting
from tests.planning.made import made

ASKED: tuple[Callable[..., Any], ...] = (
    return_curves,
    deadline_of,
    waiting,
    responsiveness,
    findings,
    delay_tails,
    prices,
    nothing_done,
)


def _poor() -> dict[str, Log]:
    rng = np.random.default_rng(0)
    rounds = rng.geometric(0.1, 200).astype(float)
    back = np.arange(200.0)[::-1]
    return {
        "all pending": made(np.full(50, np.inf), np.linspace(50, 1, 50)),
        "one row": made([1.0], [2.0]),
        "one row, pending": made([np.inf], [2.0]),
        "one row, not watched": made([np.inf], [0.0]),
        "two rows": made([1.0, np.inf], [2.0, 1.0]),
        "no delays": made(np.zeros(60), np.zeros(60), has_delays=False, time=np.arange(60.0)),
        "answered at once": made(np.zeros(60), np.linspace(10, 0, 60)),
        "the same delay": made(np.full(100, 5.0), np.linspace(100, 0, 100)),
        "all skipped": made(np.full(20, np.inf), np.linspace(20, 0, 20), arm=-1, arms=("a",)),
        "all skipped, answered": made(np.ones(20), np.linspace(20, 0, 20), arm=-1, arms=("a",)),
        "rounds": made(rounds, back, clock=Clock("rounds", "rounds"), context=rng.integers(0, 3, 200)),
        "silent": made(rounds, back, feedback="silent", arm=rng.integers(0, 3, 200)),
        "losses": made(rounds, back, reward=-1.0),
        "nothing paid yet": made(rounds, back, paid=np.full(200, np.nan), paid_when="on_answer"),
        "an arm for each": made(np.ones(3_000), np.arange(3_000.0)[::-1], arm=np.arange(3_000)),
        "huge times": made(rng.pareto(0.1, 300) * 1e6, np.full(300, 1e300)),
        "odd names": made(rounds, back, arms=("=1+1\n" * 50,), contexts=("\u202e{x}%s",)),
    }


@pytest.mark.parametrize("name", list(_poor()))
def test_every_question_is_answered(name: str) -> None:
    log = _poor()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for ask in ASKED:
            found = ask(log)
            for one in found if isinstance(found, tuple) else (found,):
                json.dumps(one.to_dict(), allow_nan=False)
                assert one.sentence
                assert "nan" not in one.sentence.split()
        for ask in (waiting, responsiveness, findings):
            assert ask(log, deadline=7.0)
