"""Laws of the delay between a decision and its answer, in rounds.

Every law can be sampled (`sample`), asked for the chance that the answer is there by some age (`return_probability`),
and asked for its `mean`. An answer that never comes is a delay of `math.inf`. Laws are continuous where the textbook's
are; a simulator with whole rounds rounds a delay up, which leaves the return probability at whole ages as it is.

>>> round(Geometric(mean=300).return_probability(500), 2)
0.81
>>> round(Pareto(minimum=400, shape=2).return_probability(500), 2)
0.36
"""

from __future__ import annotations

from doral.delays.law import Law, LawCode
from doral.delays.laws import (
    MAX_EMPIRICAL_VALUES,
    MAX_NESTED_LAWS,
    AnyLaw,
    ByOutcome,
    Empirical,
    Exponential,
    Fixed,
    Geometric,
    Lognormal,
    Never,
    Pareto,
    Weibull,
    from_dict,
)

__all__ = [
    "MAX_EMPIRICAL_VALUES",
    "MAX_NESTED_LAWS",
    "AnyLaw",
    "ByOutcome",
    "Empirical",
    "Exponential",
    "Fixed",
    "Geometric",
    "Law",
    "LawCode",
    "Lognormal",
    "Never",
    "Pareto",
    "Weibull",
    "from_dict",
]
