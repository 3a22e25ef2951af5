"""What a snapshot says, before it is believed: a checksum only tells that nobody has changed it by accident."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import Any

from doral.live.events import STATE_NAMES
from doral.live.roster import ARM_STATUS_NAMES
from doral.person import MAX_LEVELS, Category
from doral.problem import Problem

_LISTS = ("states", "arm_plays", "arm_answers", "arm_rewards")


class BadSnapshot(Exception):
    """Not to be used: damaged, or of another version. Never leaves this package."""


def _require(is_so: bool, what: str) -> None:
    if not is_so:
        raise BadSnapshot(f"{what} is not what a snapshot has")


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 2**62


def _is_amount(value: object) -> bool:
    return type(value) in (int, float) and abs(value) < float("inf")  # type: ignore[arg-type]


def _is_exact(value: object) -> bool:
    """A decimal, as text."""
    try:
        return isinstance(value, str) and Decimal(value).is_finite()
    except InvalidOperation:
        return False


def _are_pairs(value: object, kinds: tuple[type, type]) -> bool:
    return isinstance(value, list) and all(
        isinstance(one, list) and len(one) == 2 and type(one[0]) is kinds[0] and type(one[1]) is kinds[1]
        for one in value
    )


def check_fold(stored: Any, problem: Problem) -> None:
    """Types and sizes of all that `Fold.to_json` wrote."""
    n_contexts = problem.n_contexts
    _require(isinstance(stored, dict), "the fold")
    for name in ("sequence", "round", "swept"):
        _require(_is_count(stored[name]), name)
    _require(_is_amount(stored["clock"]) and stored["clock"] >= 0, "clock")
    _require(type(stored["closed"]) is bool, "closed")
    _require(_are_pairs(stored["engines"], (str, int)), "engines")
    _require(_are_pairs(stored["repairs"], (int, float)), "repairs")
    _require(_are_pairs(stored["made_otherwise"], (int, int)), "made_otherwise")
    _require(_are_pairs(stored["expiries"], (list, bool)), "expiries")
    for upto, _ in stored["expiries"]:
        _require(len(upto) == n_contexts and all(map(_is_count, upto)), "expiries")
    for name, amount in stored["ledger"].items():
        _require(isinstance(amount, str) and Decimal(amount).is_finite(), f"ledger: {name}")
    _check_leases(stored["leases"])
    _check_counts(stored["counts"], stored["arms"])
    _check_people(stored["own_expiries"], stored["levels"], problem)


def _check_leases(leases: Any) -> None:
    _require(isinstance(leases, list), "leases")
    for writer, sequence, left, arrivals, at in leases:
        _require(_is_count(writer) and _is_count(sequence) and _is_count(arrivals), "leases")
        _require(_is_exact(left) and _is_amount(at), "leases")


def _check_people(own: Any, levels: Any, problem: Problem) -> None:
    _require(_is_count(own["upto"]) and isinstance(own["calls"], list), "own_expiries")
    for sequence, clock, releases in own["calls"]:
        _require(_is_count(sequence) and _is_amount(clock) and type(releases) is bool, "own_expiries")
    categories = [one for one in problem.person if isinstance(one, Category)]
    _require(isinstance(levels, list) and len(levels) == len(categories), "levels")
    for category, names in zip(categories, levels, strict=True):
        _require(isinstance(names, list) and all(isinstance(one, str) for one in names), "levels")
        _require(tuple(names[: len(category.levels)]) == category.levels, "levels")
        _require(len(set(names)) == len(names) <= MAX_LEVELS, "levels")


def _check_counts(counts: Any, arms: Any) -> None:
    lists = (arms["added"], arms["status"], *(counts[name] for name in _LISTS))
    _require(all(isinstance(one, list) for one in lists), "a list")
    n_arms = len(arms["status"])
    _require(all(type(one) is int and 0 <= one < len(ARM_STATUS_NAMES) for one in arms["status"]), "status")
    _require(len(counts["states"]) == len(STATE_NAMES) and all(map(_is_count, counts["states"])), "states")
    _require(_are_pairs(counts["reasons"], (int, int)), "reasons")
    for name, is_right in (("arm_plays", _is_count), ("arm_answers", _is_count), ("arm_rewards", _is_exact)):
        _require(len(counts[name]) == n_arms and all(map(is_right, counts[name])), name)
    for name in ("clock_went_back", "corrections", "about", "keyed", "outside"):
        _require(_is_count(counts[name]), name)
    for name in ("reward", "late_reward"):
        _require(_is_exact(counts[name]), name)
