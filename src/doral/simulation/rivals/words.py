"""What each rival is and when to use it: one line of a list. It imports nothing."""

from __future__ import annotations

from collections.abc import Mapping

RIVALS_IN_PYTHON = "Rivals in Python (simulations and plans only)"

RIVAL_WORDS: Mapping[str, Mapping[str, str]] = {
    RIVALS_IN_PYTHON: {
        "beta-ts-lp": "Beta posteriors and a linear program; strong with few arms.",
        "explore-then-lp": "All arms alike at first, then a linear program.",
        "a/b": "A test for a while, then each context's winner.",
        "status-quo": "What is done today: fixed shares, nothing is learned.",
    },
}
