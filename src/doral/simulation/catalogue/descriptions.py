"""What each scenario of the catalogue is and what it is good for: one line of a list, by groups. It imports nothing."""

from __future__ import annotations

from collections.abc import Mapping

PAPER, REAL_LIFE = "The paper's", "Real life"
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
        "stress/no-features": "Nobody describes the arms.",
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
        "stress/silent": "Conversions of 1 to 12%; nobody says no.",
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
        "people/silent": "Conversions; nobody says no, some answer sooner.",
    },
}
