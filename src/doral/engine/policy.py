"""`doral.policy`: a policy by name, and what every option of it means.

Meaning, unit, default and words of the options stand here and nowhere else, in the docstring, because editors and the
documents' site read sources and run nothing. `help(doral.PolicyOptions)` takes them from here.
"""

from __future__ import annotations

import inspect
from typing import Unpack

from doral.engine.option_types import PolicyName, PolicyOptionsDict, ReadingName
from doral.engine.options import PolicyOptions
from doral.engine.presets import policy_of


def policy(
    name: PolicyName,
    /,
    *,
    reading: ReadingName | None = None,
    label: str | None = None,
    **options: Unpack[PolicyOptionsDict],
) -> PolicyOptions:
    """A policy by name, with options changed at will.

    A name is a choice of options: `doral-otf` is for use, `doral`, `d-alp`, `d-linucb` and `random` are the paper's,
    `doral-ids`, `d-lints`, `wait-linucb` and `eva` are rivals of other kinds, and `oracle` knows the true values. An
    option that is not given is as the name has it: defaults below are those of "doral" and, where they differ, those
    of "doral-otf". Type checkers know all names and words; for a name out of a file there is `PolicyOptions.named`.

    Args:
        name: "doral-otf", "doral-ids", "doral", "d-alp", "d-linucb", "random", "wait-linucb", "d-lints", "eva" or
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
        prior: What estimates are drawn to while answers are few. "fixed": 0, by `penalty`; "noise": the same, and the
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
            bonus as if answered as expected, so that nobody tries the same thing again and again while waiting.
            Default: "ignored". doral-otf: "expected".
        values: "learned": what arms bring is learned here; "given": features of a person named `predicted: <arm>` say
            it, as `doral.external` makes them. Default: "learned".
        reservoir: Where people have features: over how many of those who came last the budget is paced. From 2.
            Default: 512.
        basis: Where people have features: "linear": a number counts in a straight line; "splines": it may bend at
            four knots. Default: "linear".
        products: Where people have features: pairs of numbers whose product counts, too, as `age*distance+age*visits`
            or as pairs of names; "all" of them, or "" for none. Default: "".
        sampling: How doubt enters the value of an arm. "optimism": the estimate plus a bonus; "thompson": draws from
            the posterior; "directed": the arm that pays least for what it teaches; "oracle": the true values, in
            simulation only. Default: "optimism".
        bonus: How wide doubt is, with "optimism". "ahead": in units of the measured noise, by how many of a context
            are expected over the campaign; "to_come": likewise, by how many are still to come whom the budget can pay
            for; "calibrated": by its decisions so far; "corrected" and "printed": the paper's confidence bound, mended
            and as it stands. Default: "corrected". doral-otf: "ahead".
        exploration: Multiplies the bonus, or the noise of Thompson sampling: 0 exploits only, 1 is what theory says.
            From 0. Default: 1.0.
        delta: The chance, from 0 to 1, with which the bound of "corrected" may be wrong. Default: 0.05.
        window_bias: Whether the bonus is widened by decisions younger than the cut-off; None: with the "thinned"
            learner where answers have a deadline. Default: None.
        draws: With "thompson": how many draws are mixed for an arrival, so that the probability of what is done is
            known. From 1. Default: 8.
        choice: "weighted": the arm of a context has the highest index times its chance of an answer in time;
            "unweighted": the highest index alone. Default: "weighted".
        dropping: "never": every arm stays; "certified": an arm leaves a context, until further notice, once another is
            better there for certain. Default: "never". doral-otf: "certified".
        start_share: Share of the budget, from 0 to 1, for trying every arm a few times before any is passed over.
            Default: 0.0. doral-otf: 0.05.
        start_tries: At least so many tries of each arm, as far as `start_share` pays for them. Default: 0.
        explore: With this probability, from 0 to 1, an arrival gets one of its options (any arm, or none) at random,
            for a log from which others can learn. Default: 0.0.
        cutoff: The age after which an answer is not waited for, in the unit of the deadline (rounds in a simulation,
            seconds in a live campaign). None: as the race finds it, and without a race the deadline; "adaptive":
            follows the return curves; "none": no limit. Default: None. doral-otf: "adaptive".
        cutoff_share: An "adaptive" cut-off is the age by which this share, above 0 up to 1, of the answers has come.
            Default: 0.95. doral-otf: 1.0.
        return_probability: The chance that an answer comes in time. "estimated": read off return curves that are
            learned; "one": all answers come; "oracle": the true one, in simulation only. Default: "estimated".
        return_by: In time means by the "deadline" or by the "cutoff". Default: "deadline".
        return_optimism: Standard errors that are added to an estimated chance of an answer. From 0. Default: 0.0.
            doral-otf: 0.7.
        curves_by: "arm": a return curve for each arm; "context": for each context and arm, drawn to that of the arm
            while answers are few. Default: "arm". doral-otf: "context".
        curve_points: Ages at which return curves are kept, from 2 to 1,000. Default: 16.
        until_end: Where the problem counts answers "by_end": whether those that cannot come before it are worth
            nothing, and the budget is spent before. Default: False. doral-otf: True.
        pacing: Who is served. "lp": those for whom a unit of budget brings most, as far as the rate goes; "greedy":
            everybody until the budget is gone; "coin": each with the same chance. Default: "lp".
        rate: What may be spent per round from now on. "remaining": the budget left per round left; "period": an equal
            share for each of `periods`; "printed": the paper's, the budget left per round gone. Default: "remaining".
        periods: Into how many equal parts the time is cut for rate="period". From 1. Default: 50.
        cost: What a use is planned to cost. "list": the cost of its arm; "learned": what is paid on average, where
            the problem says that costs are paid on answer. Default: "list". doral-otf: "learned".
        screening: "race": a first stage compares the delays of all arms and keeps the quick ones; "none": no such
            stage. Default: "race". doral-otf: "none".
        accept: How many arms the race keeps; None: 5, or half of the arms where there are fewer than 10.
            Default: None.
        acceptance: Which arms the race keeps: the "fastest", or as "printed". Default: "fastest".
        baskets: How the race's median of means is cut: "corrected" or "printed". Default: "corrected".
        censoring: What the race makes of delays that are not known yet. "returned": only answers count; "min_age": all
            pulls of some age; "kaplan_meier": by the curve of that name; "instant": they are known at once, in
            simulation only. Default: "returned".
        min_answers: The race does not judge an arm with fewer answers (with "min_age": pulls). From 1. Default: 30.
        race_delta: The chance, above 0 up to 0.5, with which a judgement of the race may be wrong. Default: 0.05.
        tail_exponent: Alpha, how heavy the tails of the delays are thought to be: the smaller the heavier. Above 0.
            Default: 0.5.
        race_budget_share: The race may spend this share of the budget, from 0 to 1; then the quickest so far are kept.
            Default: 0.4.
        race_trains: Whether answers to pulls of the race also teach rewards. Default: True.
        cutoff_over: The race takes as cut-off the largest bound on the delay of the "accepted" arms, or of "all".
            Default: "accepted".

    Returns:
        The options, complete and checked; `dataclasses.replace` changes them further.

    >>> policy("doral", accept=3).accept
    3
    >>> policy("d-linucb/literal").bonus
    'printed'
    """
    return policy_of(name, options, reading=reading, label=label)


def _described_options() -> str:
    """The lines above that describe options."""
    _, _, after = (inspect.getdoc(policy) or "").partition("Keyword Args:\n")
    return after.partition("\n\n")[0]


def _with_options(doc: str) -> str:
    """The docstring of `PolicyOptions` with all of them among its attributes."""
    name = "    name: What it is called in results.\n"
    return inspect.cleandoc(doc).replace(name, name + _described_options() + "\n")


PolicyOptions.__doc__ = _with_options(PolicyOptions.__doc__ or "")
