"""How many functions and files a durable decision goes through, from the public call to the commit and back."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType
from typing import Any

import doral
from doral.engine.engine import PROGRAM

MOST_CALLS, MOST_FILES = 65, 17
PROBLEM = doral.Problem(
    arms=[doral.Arm("letter"), doral.Arm("call")], contexts=["old"], budget=1_000, horizon=5_000, deadline=500
)


def test_a_decision_takes_few_calls(tmp_path: Path) -> None:
    """Counted once the program is compiled; `call` is what Python's profiler counts."""
    PROGRAM.load()
    with doral.open(f"sqlite:///{tmp_path / 'one.db'}") as store:
        campaign = store.create("one", PROBLEM, seed=1, clock="rounds")
        for _ in range(30):
            campaign.decide("old")
        calls: list[tuple[str, str]] = []

        def note(frame: FrameType, event: str, _: Any) -> None:
            if event == "call" and "doral" in Path(frame.f_code.co_filename).parts:
                calls.append((frame.f_code.co_filename, frame.f_code.co_qualname))

        sys.setprofile(note)
        try:
            made = campaign.decide("old")
        finally:
            sys.setprofile(None)
    assert made.id
    assert 30 < len(calls) <= MOST_CALLS, calls
    assert 10 <= len({file for file, _ in calls}) <= MOST_FILES, calls
