"""Numbers of the delay laws in compiled code. Apart, so that describing a law does not import the compiler."""

from __future__ import annotations

from typing import Final

GEOMETRIC: Final = 0
PARETO: Final = 1
LOGNORMAL: Final = 2
WEIBULL: Final = 3
EXPONENTIAL: Final = 4
FIXED: Final = 5
EMPIRICAL: Final = 6

QUICK: Final = (GEOMETRIC, PARETO, EXPONENTIAL)  # there is a quick estimate of what they draw
