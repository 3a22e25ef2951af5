"""Variances that are learned: steps of Fisher scoring move them to where what is learned is as large as it should be.

A variance of coefficients that answers tell with information i, and from which they pull with u, has the score u^2 - i
and the information i^2.
"""

from __future__ import annotations

import math

from doral.compiled import kernel, rare


@rare
def above_zero(estimate: float, information: float) -> float:
    """What is expected of a variance with this estimate: it cannot be below 0, and is not 0 because it may be.

    The mean of a normal law, cut off at 0; the variance of a variance is 2 / information.
    """
    error = math.sqrt(2.0 / information)
    z = max(estimate / error, -6.0)
    return error * (z + math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi) / (0.5 * math.erfc(-z / math.sqrt(2.0))))


@kernel
def as_guessed(variance: float, guess: float) -> tuple[float, float]:
    """Score and information of one more coefficient, of the size that is guessed: it stands in while data are few."""
    size = max(guess, variance)
    return (guess - variance) / (size * size), 1.0 / (size * size)


@rare
def moved(variance: float, score: float, information: float, least: float, most: float) -> float:
    """The variance after a step."""
    return min(max(above_zero(variance + score / information, information), least), most)
