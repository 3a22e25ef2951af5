"""What each policy is and when to use it: one line of a list, by groups. It imports nothing.

It stands apart from presets and rivals, whose files decide: a word that is changed there would compile everything anew.
"""

from __future__ import annotations

from collections.abc import Mapping

OURS, PAPER, RIVAL, ORACLE = "DORAL", "The paper's", "Rivals of the engine", "Not a rival"
AS_PRINTED = "The paper's text as printed (/literal)"

PRESET_WORDS: Mapping[str, Mapping[str, str]] = {
    OURS: {
        "doral-otf": "Start here: learns and earns at once, waits as it pays.",
        "doral-ids": "doral-otf that also chooses by what an arm would teach.",
    },
    PAPER: {
        "doral": "Races arms for speed, then spends; where delays differ.",
        "d-alp": "doral blind to delays: what knowing the delays is worth.",
        "d-linucb": "The best-looking arm until the money is gone, no pacing.",
        "random": "Any arm, by a coin that spreads the budget: the floor.",
    },
    RIVAL: {
        "wait-linucb": "LinUCB that waits for every answer: a plain yardstick.",
        "d-lints": "Delayed Thompson sampling, as known from ride-sharing.",
        "eva": "Empirical Bayes, a budget per period; as at a border.",
    },
    ORACLE: {
        "oracle": "Knows all rewards and delays: the best that is possible.",
    },
    AS_PRINTED: {
        "doral/literal": "To check the paper to the letter; knows true delays.",
        "d-alp/literal": "The same without delays.",
        "d-linucb/literal": "d-linucb with the bonus as printed.",
        "random/literal": "random with the budget's rate as printed.",
    },
}

RIVALS_IN_PYTHON = "Rivals in Python (simulations and plans only)"

RIVAL_WORDS: Mapping[str, Mapping[str, str]] = {
    RIVALS_IN_PYTHON: {
        "beta-ts-lp": "Beta posteriors and a linear program; strong with few arms.",
        "explore-then-lp": "All arms alike at first, then a linear program.",
        "a/b": "A test for a while, then each context's winner.",
        "status-quo": "What is done today: fixed shares, nothing is learned.",
    },
}
