"""Policies and scenarios in one line each, by group. Imports nothing, so that lists are quick."""

from __future__ import annotations

from collections.abc import Mapping

OURS, PAPER, RIVAL, ORACLE = "DORAL", "The paper's", "Rivals of the engine", "Not a rival"
AS_PRINTED = "The paper's text as printed (/literal)"

PRESET_WORDS: Mapping[str, Mapping[str, str]] = {
    OURS: {
        "doral-otf": "Start here: learns and earns at once, waits as it pays.",
        "ts-lp": "Thompson sampling with the belief of doral-otf.",
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


REAL_LIFE = "Real life"
STRESS, PEOPLE = "Stress: each makes one thing hard", "People: features of who arrives, no classes"

SCENARIO_WORDS: Mapping[str, Mapping[str, str]] = {
    PAPER: {
        "paper/similar-geometric": "Arms answer about equally late.",
        "paper/similar-pareto": "About equally late, and some very late.",
        "paper/diverse-geometric": "Quick and slow arms: knowing the delays pays.",
        "paper/diverse-pareto": "Quick and slow arms, some very late; start here.",
    },
    REAL_LIFE: {
        "stress/tiny": "800 arrivals, 4 arms: a small pilot; runs at once.",
        "stress/dear-is-right": "Costs differ, and the dearest arm pays most.",
        "stress/no-features": "Arms have no features.",
        "stress/wrong-features": "Arms are described by what does not matter.",
        "stress/silent-slow": "Conversions of 2 to 15% that come very late.",
        "stress/rare": "Conversions of 1 to 4%; no news is no conversion.",
        "stress/pay-on-success": "An offer is paid for only when it is taken up.",
        "stress/until": "Ends on a date; twice as many come as expected.",
        "stress/control": "Many need nothing: what counts is what is added.",
        "stress/harm": "Half of the arms do harm; skipping is better.",
    },
    STRESS: {
        "stress/never-30": "Three of ten answers never come.",
        "stress/costs": "Arms cost from 0.5 to 3.",
        "stress/context-delays": "Arms quick in one context are slow in the next.",
        "stress/urgent": "Urgent arrivals: worth more, due sooner, a reserve.",
        "stress/silent": "Conversions of 1 to 12%; a zero is never reported.",
        "stress/positives-first": "Good news comes soon, bad news late.",
        "stress/drift": "The world changes twice.",
        "stress/short": "5,000 arrivals for ten arms: little time to learn.",
        "stress/many-arms": "1,000 arms: only their features tell of most.",
        "stress/heavy": "Very heavy tails: a few answers take for ever.",
    },
    PEOPLE: {
        "people/linear": "Five numbers that matter in straight lines.",
        "people/hybrid": "What people like goes by what an arm is like.",
        "people/nonlinear": "Steps and products, which lines do not catch.",
        "people/drift": "What features do changes twice; so does who comes.",
        "people/many": "Five numbers that matter among fifty.",
        "people/categories": "500 postcodes, most of them rare.",
        "people/one-class-each": "Classes in disguise: compare with the class model.",
        "people/silent": "Conversions; a zero is never reported.",
    },
}
