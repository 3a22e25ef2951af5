"""Options of a policy, presets by name, and `doral.policy`, whose docstring is the one description of every option.

Meaning, unit, default and words of the options stand in the docstring of `policy` and nowhere else, because editors and
the documents' site read sources and run nothing. `help(doral.PolicyOptions)` takes them from there. "Printed" always
means the text of the paper as it stands (docs/paper.md).
"""

from __future__ import annotations

import dataclasses
import inspect
import math
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, TypeAlias, TypedDict, Unpack, get_args, get_origin, get_type_hints

from doral import _check
from doral.errors import InvalidValue, UnknownName, shown
from doral.problem import MAX_AGE

MAX_RESERVOIR = 100_000
MAX_COLUMNS = 2_000
MAX_TRIES = 10**9
ALL, TIMES, PLUS = "all", "*", "+"  # of `products`
IN_UNITS_OF_NOISE = ("calibrated", "to_come")  # bonuses
PRINTED_READINGS = ("acceptance", "baskets", "bonus", "choice", "cutoff", "rate", "returns", "window")

Printed: TypeAlias = Literal["acceptance", "baskets", "bonus", "choice", "cutoff", "rate", "returns", "window"]


@dataclass(frozen=True, kw_only=True)
class PolicyOptions:
    """A policy of the compiled engine, fully specified. Made by `doral.policy`, changed by `dataclasses.replace`.

    The options are those of `doral.policy`, where each is described; defaults are those of "doral".

    Attributes:
        name: What it is called in results.

    >>> PolicyOptions(name="mine", accept=3).pacing
    'lp'
    """

    # What is learned
    learner: Literal["auto", "early", "returned", "scaled", "thinned"] = "returned"
    features: Literal["given", "none"] = "given"
    prior: Literal["fixed", "cells", "noise", "shared"] = "fixed"
    penalty: float = 1.0
    half_life: float | None = None
    outcome_split: float | None = None
    pending: Literal["ignored", "expected"] = "ignored"
    values: Literal["learned", "given"] = "learned"
    reservoir: int = 512
    basis: Literal["linear", "splines"] = "linear"
    products: str | Sequence[tuple[str, str]] = ""
    # How uncertainty counts
    sampling: Literal["optimism", "oracle", "thompson"] = "optimism"
    bonus: Literal["calibrated", "corrected", "to_come"] = "corrected"
    exploration: float = 1.0
    delta: float = 0.05
    start_share: float = 0.0
    start_tries: int = 0
    explore: float = 0.0
    # How answers return
    cutoff: float | Literal["adaptive", "none"] | None = None
    return_probability: Literal["one", "estimated", "oracle"] = "estimated"
    curves_by: Literal["arm", "context"] = "arm"
    until_end: bool = False
    # How the budget is spent
    pacing: Literal["coin", "greedy", "lp"] = "lp"
    rate: Literal["period", "remaining"] = "remaining"
    periods: int = 50
    cost: Literal["list", "learned"] = "list"
    # The race
    screening: Literal["race", "none"] = "race"
    accept: int | None = None
    censoring: Literal["returned", "min_age", "kaplan_meier", "instant"] = "returned"
    min_answers: int = 30
    race_budget_share: float = 0.4
    # The paper as printed
    printed: Sequence[Printed] = ()

    name: str = "doral"

    @classmethod
    def named(
        cls,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        reading: str | None = None,
        label: str | None = None,
    ) -> PolicyOptions:
        """Return what `doral.policy` makes, for names and options that a program reads and a type checker cannot know.

        Args:
            name: The name of a policy.
            options: Options by name; None: as the name has them.
            reading: "corrected" or "literal"; None: as the name says.
            label: What it is called in results; None: the name and, if options were changed, those.

        >>> PolicyOptions.named("doral", {"accept": 3}).name
        'doral(accept=3)'
        """
        return policy_of(name, {} if options is None else options, reading=reading, label=label)

    def __post_init__(self) -> None:
        _check.name("name of a policy", self.name)
        for option, allowed in option_words().items():
            word = getattr(self, option)
            if not _check.is_among(word, allowed):
                raise InvalidValue(option, word, f"must be one of {', '.join(allowed)}")
        if not isinstance(self.until_end, bool):
            raise InvalidValue("until_end", self.until_end, "must be True or False")
        _check_values(self)
        _check_combinations(self)

    def __repr__(self) -> str:
        return _in_one_line(self)

    def _repr_html_(self) -> str:
        return _as_card(self)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values; `PolicyOptions(**d)` gives an equal object back."""
        return {**dataclasses.asdict(self), "printed": list(self.printed)}

    def accepted_of(self, n_arms: int) -> int:
        """Return how many arms a race accepts.

        Args:
            n_arms: How many there are.
        """
        if self.accept is None:
            return min(5, math.ceil(n_arms / 2))
        if self.accept > n_arms:
            raise InvalidValue("accept", self.accept, f"must be at most the number of arms, {n_arms}")
        return self.accept


OPTION_NAMES = tuple(field.name for field in dataclasses.fields(PolicyOptions) if field.name != "name")


@cache
def option_words() -> Mapping[str, tuple[str, ...]]:
    """Return the options that take one of a few words, with these."""
    hints = get_type_hints(PolicyOptions)
    return {option: get_args(hint) for option, hint in hints.items() if get_origin(hint) is Literal}


def check_option_names(given: Mapping[str, object]) -> None:
    """Refuse a misspelt option with its name and the nearest one."""
    for option in given:
        if option not in OPTION_NAMES:
            raise UnknownName("policy option", option, OPTION_NAMES)


def _check_values(options: PolicyOptions) -> None:
    """Check numbers and ranges, and turn them into plain Python ones."""
    number, whole = _check.finite_number, _check.whole_number
    _check.set_fields(
        options,
        penalty=number("penalty", options.penalty, at_least=1e-9, at_most=1e9),
        exploration=number("exploration", options.exploration, at_least=0, at_most=1e6),
        delta=number("delta", options.delta, at_least=1e-12, at_most=1),
        explore=number("explore", options.explore, at_least=0, at_most=1),
        start_share=number("start_share", options.start_share, at_least=0, at_most=1),
        start_tries=whole("start_tries", options.start_tries, at_least=0, at_most=MAX_TRIES),
        periods=whole("periods", options.periods, at_least=1, at_most=10**9),
        reservoir=whole("reservoir", options.reservoir, at_least=2, at_most=MAX_RESERVOIR),
        products=_checked_products(options.products),
        min_answers=whole("min_answers", options.min_answers, at_least=1, at_most=10**9),
        race_budget_share=number("race_budget_share", options.race_budget_share, at_least=0, at_most=1),
        printed=_checked_printed(options.printed),
    )
    if options.half_life is not None:
        half_life = number("half_life", options.half_life, at_least=1e-3, at_most=MAX_AGE)
        _check.set_fields(options, half_life=half_life)
    if options.outcome_split is not None:
        _check.set_fields(options, outcome_split=number("outcome_split", options.outcome_split))
    if options.accept is not None:
        _check.set_fields(options, accept=whole("accept", options.accept, at_least=1, at_most=100_000))
    if isinstance(options.cutoff, str):
        if options.cutoff not in ("adaptive", "none"):
            raise InvalidValue("cutoff", options.cutoff, "must be a number of rounds, adaptive, none or None")
    elif options.cutoff is not None:
        _check.set_fields(options, cutoff=number("cutoff", options.cutoff, at_least=1, at_most=MAX_AGE))


def _checked_printed(printed: object) -> tuple[str, ...]:
    """Return readings as printed in alphabetical order."""
    if not isinstance(printed, Sequence | Set):  # not any iterable: one may be endless
        raise InvalidValue("printed", printed, f"must be a list of some of {', '.join(PRINTED_READINGS)}")
    words = [word for word in printed.split(PLUS) if word] if isinstance(printed, str) else list(printed)
    for word in words:
        if not _check.is_among(word, PRINTED_READINGS):
            raise InvalidValue("printed", word, f"must be among {', '.join(PRINTED_READINGS)}")
    return tuple(sorted(set(words)))


def _checked_products(products: object) -> str:
    """Return pairs of numbers as one word, such as `age*distance+age*visits`."""
    remedy = "must be pairs of names, as in [('age', 'distance_km')], or 'all'"
    if isinstance(products, str):
        pairs: list[object] = [] if products in ("", ALL) else [term.split(TIMES) for term in products.split(PLUS)]
    else:
        what = remedy.removeprefix("must be ")
        pairs = list(_check.items("products", products, what=what, at_most=MAX_COLUMNS, at_least=0))
    words = []
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise InvalidValue("products", pair, remedy)
        names = [_check.name("number in products", name.strip() if isinstance(name, str) else name) for name in pair]
        for name in names:
            if TIMES in name or PLUS in name:
                raise InvalidValue("number in products", name, f"must not hold {TIMES} or {PLUS}; give it another name")
        words.append(TIMES.join(names))
    return ALL if products == ALL else PLUS.join(words)


def _check_combinations(options: PolicyOptions) -> None:
    """Refuse options that cannot be combined."""
    in_noise = options.bonus in IN_UNITS_OF_NOISE and "bonus" not in options.printed
    estimated, fixed = options.return_probability == "estimated", options.prior == "fixed"
    split, thompson = options.outcome_split, options.sampling == "thompson"
    refused: tuple[tuple[bool, str, object, str], ...] = (
        (
            options.features == "none" and not thompson and not in_noise,
            "features",
            options.features,
            "has only a bonus in units of noise: bonus='calibrated' or 'to_come'",
        ),
        (in_noise and fixed, "bonus", options.bonus, "is in units of measured noise: needs prior='noise' or 'shared'"),
        (thompson and fixed, "sampling", "thompson", "is in units of measured noise: needs prior='noise' or 'shared'"),
        (
            options.sampling == "oracle" and "choice" in options.printed,
            "printed",
            "choice",
            "needs an index, which sampling='oracle' has not",
        ),
        (
            options.learner == "early" and not estimated,
            "learner",
            "early",
            "counts trials when return curves are read: needs return_probability='estimated'",
        ),
        (
            not fixed and options.learner == "thinned",
            "prior",
            options.prior,
            "is measured on answers; the thinned learner has none of its own",
        ),
        (
            options.pending == "expected" and options.learner == "thinned",
            "pending",
            "expected",
            "counts pending decisions, which the thinned learner does anyway",
        ),
        (
            options.cutoff == "adaptive" and not estimated,
            "cutoff",
            "adaptive",
            "follows return curves: needs return_probability='estimated'",
        ),
        (
            split is not None and options.learner in ("scaled", "thinned", "early"),
            "outcome_split",
            split,
            "weighs answers as they come in: needs learner='returned' or 'auto'",
        ),
        (
            split is not None and not estimated,
            "outcome_split",
            split,
            "rests on return curves: needs return_probability='estimated'",
        ),
        (
            split is not None and options.half_life is not None,
            "outcome_split",
            split,
            "cannot be combined with half_life",
        ),
        (
            options.start_share > 0.0 and fixed,
            "start_share",
            options.start_share,
            "rests on measured noise: needs prior='noise', 'shared' or 'cells'",
        ),
        (
            options.rate == "period" and "rate" in options.printed,
            "printed",
            "rate",
            "contradicts rate='period'; give one of the two",
        ),
    )
    for is_refused, option, value, remedy in refused:
        if is_refused:
            raise InvalidValue(option, value, remedy)


# --- presets ---------------------------------------------------------------------------------------------------------

_RACING: Mapping[str, Any] = {}  # the defaults of PolicyOptions are DORAL
_PLAIN: Mapping[str, Any] = {"screening": "none", "learner": "thinned", "return_probability": "one"}
# The paper's text as printed, wherever it can run at all.
_AS_PRINTED: Mapping[str, Any] = {"printed": PRINTED_READINGS, "min_answers": 1, "learner": "thinned"}
# One stage: learn and earn at once (docs/beyond.md).
_ON_THE_FLY: Mapping[str, Any] = {
    "screening": "none",
    "cutoff": "adaptive",
    "learner": "auto",
    "prior": "cells",
    "bonus": "to_come",
    "pending": "expected",
    "curves_by": "context",
    "until_end": True,
    "cost": "learned",
}
# Rivals beyond the paper's.
_WAITING: Mapping[str, Any] = {"screening": "none", "cutoff": "none", "return_probability": "one"}

_CORRECTED: Mapping[str, Mapping[str, Any]] = {
    "doral-otf": _ON_THE_FLY,
    "ts-lp": {**_ON_THE_FLY, "sampling": "thompson", "exploration": 0.5},
    "doral": _RACING,
    "d-alp": {**_RACING, "return_probability": "one"},
    "d-linucb": {**_PLAIN, "pacing": "greedy"},
    "random": {**_PLAIN, "pacing": "coin"},
    "wait-linucb": _WAITING,
    "d-lints": {**_WAITING, "cutoff": None, "prior": "noise", "sampling": "thompson"},
    "eva": {
        **_WAITING,
        "features": "none",
        "prior": "shared",
        "bonus": "calibrated",
        "pending": "expected",
        "rate": "period",
    },
    # No rival: it is given the true values, but for what is paid. In simulation only.
    "oracle": {**_WAITING, "return_probability": "estimated", "sampling": "oracle", "cost": "learned"},
}
_LITERAL: Mapping[str, Mapping[str, Any]] = {
    "doral": {**_AS_PRINTED, "return_probability": "oracle"},
    "d-alp": {**_AS_PRINTED, "return_probability": "one"},
    "d-linucb": {**_CORRECTED["d-linucb"], "printed": ("bonus",)},
    "random": {**_CORRECTED["random"], "printed": ("bonus", "rate")},
}
_READINGS: Mapping[str, Mapping[str, Mapping[str, Any]]] = {"corrected": _CORRECTED, "literal": _LITERAL}

PRESETS = tuple(_CORRECTED)
POLICY_NAMES = (*PRESETS, *(f"{preset}/literal" for preset in _LITERAL))

PolicyName: TypeAlias = Literal[
    "doral-otf",
    "ts-lp",
    "doral",
    "d-alp",
    "d-linucb",
    "random",
    "wait-linucb",
    "d-lints",
    "eva",
    "oracle",
    "doral/literal",
    "d-alp/literal",
    "d-linucb/literal",
    "random/literal",
]
ReadingName: TypeAlias = Literal["corrected", "literal"]


def make_policy(name: str, /, *, reading: str | None = None, label: str | None = None, **options: Any) -> PolicyOptions:
    """Return what `policy` makes, of arguments that no type checker can know: for the library itself."""
    return policy_of(name, options, reading=reading, label=label)


def policy_of(
    name: str, options: Mapping[str, Any], *, reading: str | None = None, label: str | None = None
) -> PolicyOptions:
    """Return a policy by name; here names and options are checked."""
    if not isinstance(name, str):
        raise InvalidValue("policy", name, f"must be one of {', '.join(POLICY_NAMES)}")
    preset, _, suffix = name.partition("/")
    if preset not in PRESETS or suffix not in ("", "literal", "corrected"):
        raise UnknownName("policy", name, POLICY_NAMES)
    if reading is None:
        reading = suffix or "corrected"
    elif not _check.is_among(reading, _READINGS):
        raise UnknownName("reading", reading, _READINGS)
    elif suffix and suffix != reading:
        raise InvalidValue("reading", reading, f"contradicts the name {name!r}; give one of the two")
    if preset not in _READINGS[reading]:
        raise InvalidValue("reading", reading, f"{preset} is not the paper's; it has no literal reading")
    check_option_names(options)
    title = preset if reading == "corrected" else f"{preset}/{reading}"
    made = PolicyOptions(**{**_READINGS[reading][preset], **options, "name": title})  # checked before it is named
    changed = ", ".join(f"{option}={_short(value)}" for option, value in sorted(options.items()))
    if label is not None:
        return replace(made, name=_check.name("label", label))
    return replace(made, name=f"{title}({changed})") if changed else made


def _short(value: object) -> str:
    return "+".join(map(str, value)) if isinstance(value, (list, tuple, set, frozenset)) else str(value)


# --- options that are gone, in campaigns that were created with them -------------------------------------------------

_PRINTED_BEFORE = {  # options of 0.2 whose word is now one of `printed`
    ("acceptance", "printed"): "acceptance",
    ("baskets", "printed"): "baskets",
    ("bonus", "printed"): "bonus",
    ("choice", "unweighted"): "choice",
    ("cutoff_over", "all"): "cutoff",
    ("rate", "printed"): "rate",
    ("return_by", "cutoff"): "returns",
    ("window_bias", True): "window",
}
_USUAL_BEFORE: Mapping[str, tuple[Any, ...]] = {  # with these values nothing is lost
    "acceptance": ("fastest",),
    "baskets": ("corrected",),
    "choice": ("weighted",),
    "curve_points": (16,),
    "cutoff_over": ("accepted",),
    "cutoff_share": (0.95, 1.0),
    "draws": (8,),
    "dropping": ("never", "certified"),
    "race_delta": (0.05,),
    "race_trains": (True,),
    "return_by": ("deadline",),
    "return_optimism": (0.0, 0.7),
    "tail_exponent": (0.5,),
    "window_bias": (None,),
}


def read_stored(stored: Mapping[str, Any]) -> tuple[PolicyOptions, tuple[str, ...]]:
    """Return the policy of a stored campaign, and the options that are gone and have no equal in this version."""
    options, printed, lost = dict(stored), list(stored.get("printed", ())), []
    for (option, word), reading in _PRINTED_BEFORE.items():
        if option in options and options[option] == word and type(options[option]) is type(word):
            printed.append(reading)
            del options[option]
    if options.get("bonus") == "ahead":
        options["bonus"] = "to_come"
    if options.get("sampling") == "directed":
        options["sampling"] = "optimism"
        lost.append("sampling=directed")
    for option, usual in _USUAL_BEFORE.items():
        if option in options:
            value = options.pop(option)
            if value not in usual:
                lost.append(f"{option}={value}")
    check_option_names({option: value for option, value in options.items() if option != "name"})
    return PolicyOptions(**{**options, "printed": printed}), tuple(lost)


# --- `doral.policy` --------------------------------------------------------------------------------------------------


class OptionsBesideModel(TypedDict, total=False):
    """What can be chosen about every policy, that of `doral.external` included, as type checkers see it."""

    learner: Literal["auto", "early", "returned", "scaled", "thinned"]
    features: Literal["given", "none"]
    prior: Literal["fixed", "cells", "noise", "shared"]
    penalty: float
    half_life: float | None
    outcome_split: float | None
    pending: Literal["ignored", "expected"]
    reservoir: int
    bonus: Literal["calibrated", "corrected", "to_come"]
    exploration: float
    delta: float
    start_share: float
    cutoff: float | Literal["adaptive", "none"] | None
    return_probability: Literal["one", "estimated", "oracle"]
    curves_by: Literal["arm", "context"]
    until_end: bool
    pacing: Literal["coin", "greedy", "lp"]
    rate: Literal["period", "remaining"]
    periods: int
    cost: Literal["list", "learned"]
    accept: int | None
    censoring: Literal["returned", "min_age", "kaplan_meier", "instant"]
    race_budget_share: float
    printed: Sequence[Printed]


class PolicyOptionsDict(OptionsBesideModel, total=False):
    """All options: with those that a model from outside decides for itself."""

    values: Literal["learned", "given"]
    basis: Literal["linear", "splines"]
    products: str | Sequence[tuple[str, str]]
    sampling: Literal["optimism", "oracle", "thompson"]
    explore: float
    start_tries: int
    screening: Literal["race", "none"]
    min_answers: int


def policy(
    name: PolicyName,
    /,
    *,
    reading: ReadingName | None = None,
    label: str | None = None,
    **options: Unpack[PolicyOptionsDict],
) -> PolicyOptions:
    """Return a policy by name, with options changed at will.

    A name is a choice of options: `doral-otf` is for use, and `ts-lp` is the same with posterior draws in place of its
    bonus. `doral`, `d-alp`, `d-linucb` and `random` are the paper's, `d-lints`, `wait-linucb` and `eva` are rivals of
    other kinds, and `oracle` is given the true values. An option that
    is not given is as the name has it: defaults below are those of "doral" and, where they differ, those of
    "doral-otf". Type checkers know all names and words; for a name out of a file there is `PolicyOptions.named`.

    Args:
        name: "doral-otf", "ts-lp", "doral", "d-alp", "d-linucb", "random", "wait-linucb", "d-lints", "eva" or
            "oracle"; with "/literal" behind it, one of the paper's as printed.
        reading: "corrected" (the default) is the paper with its slips mended, "literal" the paper as printed, which
            "doral", "d-alp", "d-linucb" and "random" have; "doral/literal" says the same in one word.
        label: What it is called in results. Default: the name and, if options were changed, those.

    Keyword Args:
        learner: From which answers rewards are learned. "returned": from those that have come, right where an answer
            is seen even if it brings 0; "early": from silence, too, where no news and a reward of 0 look the same;
            "scaled": likewise, but only when the deadline has passed; "thinned": silence counts as 0 at once, as
            printed; "auto": "returned" where feedback is explicit, and else "early", or without return curves
            "scaled". Default: "returned". doral-otf: "auto".
        features: "given": arms share what is learned through their features; "none": every context and arm stands for
            itself. Default: "given".
        prior: What estimates are shrunk to while answers are few. "fixed": 0, by `penalty`; "noise": the same, and the
            noise of rewards is measured; "shared": what contexts have in common, which is learned, too; "cells": as
            "shared", where features of arms may be wrong. Default: "fixed". doral-otf: "cells".
        penalty: Lambda of the ridge regression, in units of squared features; with a learned prior only where it
            starts. Above 0. Default: 1.0.
        half_life: Rounds after which what was learned counts half, for a world that changes; None: it counts for
            ever. Default: None.
        outcome_split: A reward. Where good news come later than bad ones, or earlier: answers above it and the others
            have return curves of their own, by which the answers of young decisions are weighted. None: outcomes are
            not told apart. Default: None.
        pending: Decisions that wait for their answer. "ignored": they tell nothing yet; "expected": they narrow the
            bonus as if answered as expected, so that the same arm is not tried again and again while waiting.
            Default: "ignored". doral-otf: "expected".
        values: "learned": what arms bring is learned here; "given": features of a person named `predicted: <arm>` say
            it, as `doral.external` makes them. Default: "learned".
        reservoir: Where arrivals have features: over how many recent ones the budget is paced. From 2. Default: 512.
        basis: Where arrivals have features: "linear": a number counts in a straight line; "splines": it may bend at
            four knots. Default: "linear".
        products: Where arrivals have features: pairs of numbers whose product counts, too, as
            `age*distance+age*visits` or as pairs of names; "all" of them, or "" for none. Default: "".
        sampling: How uncertainty enters the value of an arm. "optimism": the estimate plus a bonus; "thompson": draws
            from the posterior; "oracle": the true values, in simulation only. Default: "optimism". ts-lp: "thompson".
        bonus: How wide the bonus is, with "optimism". "to_come": in units of the measured noise, by how many arrivals
            of a context are still to come that the budget can pay for; "calibrated": likewise, by its decisions so
            far; "corrected": the paper's confidence bound, mended. Default: "corrected". doral-otf: "to_come".
        exploration: Multiplies the bonus, or the noise of Thompson sampling: 0 exploits only, 1 is what theory says.
            From 0. Default: 1.0. ts-lp: 0.5.
        delta: The chance, from 0 to 1, with which the bound of "corrected" may be wrong. Default: 0.05.
        start_share: Share of the budget, from 0 to 1, for trying every arm a few times before any is passed over, as
            models from outside need it, which state no uncertainty. Default: 0.0. `doral.external`: 0.05.
        start_tries: At least so many tries of each arm, as far as `start_share` pays for them. Default: 0.
        explore: With this probability, from 0 to 1, an arrival gets one of its options (any arm, or none) at random,
            for a log from which others can learn. Default: 0.0.
        cutoff: The age after which an answer is not waited for, in the unit of the deadline (rounds in a simulation,
            seconds in a live campaign). None: as the race finds it, and without a race the deadline; "adaptive":
            follows the return curves; "none": no limit. Default: None. doral-otf: "adaptive".
        return_probability: The chance that an answer comes in time. "estimated": read off return curves that are
            learned; "one": all answers come; "oracle": the true one, in simulation only. Default: "estimated".
        curves_by: "arm": a return curve for each arm; "context": for each context and arm, shrunk to that of the arm
            while answers are few. Default: "arm". doral-otf: "context".
        until_end: Where the problem counts answers "by_end": whether those that cannot come before it are worth
            nothing, and the budget is spent before. Default: False. doral-otf: True.
        pacing: Which arrivals are served. "lp": those for which a unit of budget brings most, as far as the rate goes;
            "greedy": all until the budget is gone; "coin": each with the same chance. Default: "lp".
        rate: What may be spent per round from now on. "remaining": the budget left per round left; "period": an equal
            share for each of `periods`. Default: "remaining".
        periods: Into how many equal parts the time is cut for rate="period". From 1. Default: 50.
        cost: What a use is planned to cost. "list": the cost of its arm; "learned": what is paid on average, where
            the problem says that costs are paid on answer. Default: "list". doral-otf: "learned".
        screening: "race": a first stage compares the delays of all arms and keeps the quick ones; "none": no such
            stage. Default: "race". doral-otf: "none".
        accept: How many arms the race keeps; None: 5, or half of the arms where there are fewer than 10.
            Default: None.
        censoring: What the race makes of delays that are not known yet. "returned": only answers count; "min_age": all
            pulls of some age; "kaplan_meier": by the curve of that name; "instant": they are known at once, in
            simulation only. Default: "returned".
        min_answers: The race does not judge an arm with fewer answers (with "min_age": pulls). From 1. Default: 30.
        race_budget_share: The race may spend this share of the budget, from 0 to 1; then the quickest so far are kept.
            Default: 0.4.
        printed: Readings of the paper that are taken as printed instead of corrected, for ablations: "acceptance" (the
            race keeps slow arms), "baskets" (their number in the median of means), "bonus" (n is the round), "choice"
            (the index alone chooses the arm), "cutoff" (over all arms), "rate" (budget left per round gone),
            "returns" (in time means by the cut-off), "window" (the bias term with every learner). On the command line
            as `rate+window`. Default: ().

    Returns:
        The options, complete and checked; `dataclasses.replace` changes them further.

    >>> policy("doral", accept=3).accept
    3
    >>> policy("d-linucb/literal").printed
    ('bonus',)
    """
    return policy_of(name, options, reading=reading, label=label)


def _with_options(doc: str) -> str:
    """Return the docstring of `PolicyOptions` with all options among its attributes."""
    _, _, after = (inspect.getdoc(policy) or "").partition("Keyword Args:\n")
    name = "    name: What it is called in results.\n"
    return inspect.cleandoc(doc).replace(name, name + after.partition("\n\n")[0] + "\n")


PolicyOptions.__doc__ = _with_options(PolicyOptions.__doc__ or "")

# --- how a policy prints ---------------------------------------------------------------------------------------------

_WIDEST = 200  # characters of a line


def _in_one_line(options: PolicyOptions) -> str:
    """Return the nearest preset and what is different."""
    preset, changed = _nearest(options)
    if options.name == preset and not changed:
        return f"<Policy {preset!r}>"
    changes = [f"{option}={shown(value)}" for option, value in changed.items()]
    line = f"<Policy {shown(options.name)}: {preset}{' with ' if changes else ''}{', '.join(changes)}>"
    while len(line) > _WIDEST and len(changes) > 1:
        changes = changes[:-1]
        more = len(changed) - len(changes)
        line = f"<Policy {shown(options.name)}: {preset} with {', '.join(changes)} and {more} more changes>"
    return line


def _as_card(options: PolicyOptions) -> str:
    """Return a card for a notebook: what is different first."""
    from doral.pages.notebook import card, note, small_table

    preset, changed = _nearest(options)
    usual = _presets()[preset]
    order = [*changed, *(option for option in OPTION_NAMES if option not in changed)]
    rows = [
        (option, shown(getattr(options, option)), shown(getattr(usual, option)) if option in changed else "")
        for option in order
    ]
    different = f"{len(changed)} changed" if changed else "nothing changed"
    table = small_table(("Option", "Value", f"In {preset}"), rows)
    help_line = note("help(doral.policy) says what each option means.")
    return card(f"Policy {options.name}", [("Preset", f"{preset}, {different}")], parts=[table, help_line])


@cache
def _presets() -> Mapping[str, PolicyOptions]:
    return {name: policy_of(name, {}) for name in POLICY_NAMES}


def _nearest(options: PolicyOptions) -> tuple[str, dict[str, Any]]:
    """Return the preset after which it is named, or from which it differs least, and in what."""
    presets = _presets()
    called = options.name.partition("(")[0]
    changes = {
        name: {
            option: getattr(options, option)
            for option in OPTION_NAMES
            if getattr(options, option) != getattr(preset, option)
        }
        for name, preset in presets.items()
    }
    name = called if called in presets else min(presets, key=lambda one: len(changes[one]))
    return name, changes[name]
