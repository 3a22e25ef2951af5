"""From a policy's options to its pieces, and from those to a state machine of its own and its first state."""

from __future__ import annotations

import dataclasses
import itertools
import math
import os
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from typing import Any, NamedTuple, get_args

import numpy as np

from doral._cached import made_once
from doral._kernel import Composition, Hook, Kernel, Slot
from doral.engine import hooks
from doral.engine.blueprint import Blueprint
from doral.engine.catalogue import DEFAULTS, PIECES, PLACES
from doral.engine.guards import first_chosen, flag_name, if_chosen
from doral.engine.options import PolicyOptions
from doral.engine.pieces import costs, forget, people, race
from doral.engine.presets import POLICY_NAMES, policy
from doral.engine.purse import decimal_rest
from doral.engine.room import check_room
from doral.engine.schedule import stock_rounds
from doral.engine.state import (
    COMMON,
    CONTEXT,
    DECISION,
    FIRST_CAPACITY,
    NOW,
    RESERVED,
    Coin,
    Confidence,
    Limits,
    State,
    has,
)
from doral.estimators.exact_sums import new_exact_sums
from doral.estimators.ridge import new_ridge, padded
from doral.estimators.survival import new_return_curves
from doral.pacing import new_demand, new_hulls
from doral.person import Number
from doral.problem import Arm, Feedback, Paid, Problem, reserve_depths

PRESET_SECONDS, ANY_SECONDS = 6.0, 14.0  # to compile, roughly: whoever waits is told

_JOINTS = {name: one for name, one in vars(hooks).items() if isinstance(one, Hook)}
Chosen = NamedTuple("Chosen", [(flag_name(name), bool) for name in PIECES])  # type: ignore[misc]


def check_pieces() -> None:
    """A kernel whose name is nearly that of a hook would never be called: a slip must not pass for a choice."""
    for name, piece in PIECES.items():
        kernels = {one: value for one, value in vars(piece).items() if isinstance(value, Kernel)}
        place, _, _ = name.rpartition(".")
        for needed in PLACES[place].FILLS if place else ():
            if needed not in kernels:
                has = ", ".join(kernels)
                raise TypeError(f"{piece.__name__}: pieces of {place}/ have a kernel {needed!r}; this one has {has}")
        for kernel, value in kernels.items():
            near = get_close_matches(kernel, _JOINTS, n=1, cutoff=0.8)
            is_ours = value.function.__module__ == piece.__name__
            if is_ours and kernel not in _JOINTS and not kernel.startswith("_") and near:
                raise TypeError(f"{piece.__name__}: no hook or slot is called {kernel!r}; did you mean {near[0]!r}?")


def chosen_pieces(options: PolicyOptions, problem: Problem) -> tuple[str, ...]:
    """The names of the pieces that make up this policy for this problem, in alphabetical order."""
    names = [name for name, piece in PIECES.items() if "." not in name and piece.is_in(options, problem)]
    for name, place in PLACES.items():
        word = place.word(options, problem) if hasattr(place, "word") else getattr(options, place.OPTION)
        if word != getattr(place, "EMPTY", None):
            names.append(f"{name}.{word}")
    return tuple(sorted(names))


@made_once
def compose(pieces: tuple[str, ...]) -> Any:
    """The class of states of these pieces. It carries the composition, by which the compiler finds their kernels."""
    kernels = {name: _kernels(one, [PIECES[piece] for piece in pieces]) for name, one in _JOINTS.items()}
    return _state_class("+".join(pieces), pieces, kernels, label=_label(pieces), compile_seconds=PRESET_SECONDS)


@made_once
def compose_all() -> Any:
    """The class of states that may hold any of the pieces, and ask while they run. It serves all policies that are no
    presets, so that a sweep over options does not compile each of its policies: slower, with the same decisions.
    """
    kernels = {name: _guarded_kernels(one) for name, one in _JOINTS.items()}
    label = "all pieces, for policies that are no presets,"
    return _state_class("any", tuple(PIECES), kernels, label=label, compile_seconds=ANY_SECONDS)


def _state_class(
    name: str, pieces: tuple[str, ...], kernels: Mapping[str, tuple[Kernel, ...]], *, label: str, compile_seconds: float
) -> Any:
    memories = [_memory_name(piece) for piece in pieces if hasattr(PIECES[piece], "memory")]
    fields = [(field, Any) for field in dict.fromkeys((*COMMON, *memories))]
    plain = NamedTuple("ComposedState", fields)  # type: ignore[misc]
    composition = Composition(name=name, hooks=kernels)
    own = {"__slots__": (), "composition": composition, "label": label, "compile_seconds": compile_seconds}
    return type("ComposedState", (plain,), own)


def _kernels(joint: Hook, modules: list[Any]) -> tuple[Kernel, ...]:
    found = tuple(getattr(one, joint.name) for one in modules if isinstance(getattr(one, joint.name, None), Kernel))
    if isinstance(joint, Slot):
        if len(found) > 1:
            raise AssertionError(f"slot {joint.name} is filled by several of {[one.__name__ for one in modules]}")
        if not found and not hasattr(DEFAULTS, joint.name):
            raise TypeError(f"slot {joint.name} is filled by none of {[one.__name__ for one in modules]}")
        return found or (getattr(DEFAULTS, joint.name),)
    return found


def _guarded_kernels(joint: Hook) -> tuple[Kernel, ...]:
    """Those of all pieces, each behind the question whether the piece is chosen."""
    offers = {flag_name(name): getattr(piece, joint.name, None) for name, piece in PIECES.items()}
    kernels = {flag: one for flag, one in offers.items() if isinstance(one, Kernel)}
    if isinstance(joint, Slot):
        return (first_chosen(kernels, getattr(DEFAULTS, joint.name, None)),)
    return tuple(if_chosen(flag, one) for flag, one in kernels.items())


def _memory_name(piece: str) -> str:
    return str(getattr(PIECES[piece], "MEMORY", piece.rpartition(".")[2]))


def first_state(blueprint: Blueprint) -> State:
    """The state before the first arrival, still to be prepared by compiled code (`entries.prepare`)."""
    pieces = chosen_pieces(blueprint.options, blueprint.problem)
    check_room(blueprint, pieces)
    memories = {
        _memory_name(name): PIECES[name].memory(blueprint) for name in pieces if hasattr(PIECES[name], "memory")
    }
    problem = blueprint.problem
    is_preset = pieces in _preset_compositions(
        problem.feedback, problem.baseline is not None, problem.paid, problem.until is not None, bool(problem.person)
    )
    if is_preset and not composes_all():
        state: State = compose(pieces)(**_common(blueprint, pieces), **memories)
    else:
        state = compose_all()(**_common(blueprint, pieces), **{**_empty_memories(), **memories})
    return state


def composes_all() -> bool:
    """Whether presets are to be played by the program that serves all policies: it must decide as theirs do."""
    return os.environ.get("DORAL_COMPOSE") == "any"


@cache
def _preset_compositions(
    feedback: str, has_baseline: bool, paid: str, ends_by_date: bool, has_person: bool
) -> Mapping[tuple[str, ...], str]:
    """Those that are worth machine code of their own, with the name of the preset; with a baseline, or where people
    have features, the first.
    """
    problem = _tiny_problem(feedback, 0.0 if has_baseline else None, paid)
    if has_person:
        problem = dataclasses.replace(problem, person=(Number("number"),))
    if ends_by_date:
        problem = dataclasses.replace(problem, horizon=0, until=1.0)
    names = POLICY_NAMES[:1] if has_baseline or has_person else POLICY_NAMES
    return {chosen_pieces(policy(name), problem): name for name in reversed(names)}


def _label(pieces: tuple[str, ...]) -> str:
    """What people call a policy of these pieces."""
    words = itertools.product(get_args(Feedback), (True, False), get_args(Paid), (True, False), (True, False))
    known = [names[pieces] for names in itertools.starmap(_preset_compositions, words) if pieces in names]
    return known[-1] if known else "a policy"


@cache
def _empty_memories() -> Mapping[str, Any]:
    """A memory of the right type for every piece, for states without that piece."""
    tiny = _tiny_problem("explicit", None, "on_answer")
    unknown = np.zeros((1, 1, 1))
    forgetful = Blueprint(
        options=PolicyOptions(half_life=1.0, cutoff=1.0), problem=tiny, seed=0, oracle=unknown, true_values=unknown
    )
    telling = Blueprint(options=PolicyOptions(outcome_split=0.0, cutoff=1.0), problem=tiny, seed=0)
    return {
        _memory_name(name): piece.memory(telling if name == "outcomes" else forgetful)
        for name, piece in PIECES.items()
        if hasattr(piece, "memory")
    }


def _tiny_problem(feedback: str, baseline: float | None, paid: str) -> Problem:
    arms, contexts = [Arm("arm", features=[1.0])], ["context"]
    return Problem(
        arms=arms,
        contexts=contexts,
        budget=1.0,
        horizon=1,
        deadline=1.0,
        feedback=feedback,  # type: ignore[arg-type]
        baseline=baseline,
        paid=paid,  # type: ignore[arg-type]
    )


def _common(blueprint: Blueprint, pieces: tuple[str, ...]) -> dict[str, Any]:
    options, problem, ages = blueprint.options, blueprint.problem, blueprint.ages
    n_arms, n_contexts, n_rows = problem.n_arms, problem.n_contexts, blueprint.n_rows
    room, races = padded(n_arms), "race" in pieces
    copies = 2 if options.pending == "expected" else 1
    barrier = np.full((n_rows + 1, room), -np.inf)
    barrier[:, :n_arms] = -np.inf if races else 0.0
    if problem.control is not None:
        barrier[:, problem.control] = -np.inf
    ridge = new_ridge(
        np.zeros((n_arms, 0)) if problem.person else blueprint.features,  # people have a line of their own
        n_rows,
        options.penalty,
        copies=copies,
        is_drawn_from=options.sampling == "thompson",
        deviates=options.prior == "cells",
    )
    priced = problem.costs[problem.costs > 0.0]
    if priced.size:  # what costs more may well bring more
        ridge.reach[:] = np.maximum(1.0, problem.costs / priced.min())
    is_uncertain = options.return_probability == "estimated"
    return {
        "now": _now(blueprint, races),
        "contexts": _contexts(blueprint),
        "demand": _demand(blueprint),
        "tiers": _tiers(problem),
        "ridge": ridge,
        "tally": np.zeros((3, n_contexts, n_arms)),
        "exact": new_exact_sums(n_contexts, n_arms),
        "thinning": np.ones((n_contexts, n_arms)),
        "tau": np.ones((n_rows, room)),
        "tau_error": np.full((n_rows, room), 1.0 if is_uncertain else 0.0),
        "curves": new_return_curves(n_arms, n_contexts if options.curves_by == "context" else 1, ages),
        "hulls": new_hulls(
            blueprint.costs_by_row,
            n_rows,
            len(problem.reserves) + 1,
            floor=0.0 if _has_prior(pieces) else problem.return_at_least,
            is_learned="costs" in pieces,
        ),
        "list_costs": blueprint.costs_by_row.copy(),
        "cost_rest": np.array([[decimal_rest(cost) for cost in row] for row in blueprint.costs_by_row.tolist()]),
        "dearest": n_arms - 1 - blueprint.costs_by_row[:, ::-1].argmax(axis=1),
        "barrier": barrier,
        "stale": np.arange(n_rows)[::-1].copy(),
        "ring": np.zeros(FIRST_CAPACITY, dtype=DECISION),
        "values": np.zeros(room),
        "gamma": np.zeros(room),
        "allowed": np.zeros(n_arms, dtype=np.int64),
        "chosen": Chosen(*(name in pieces for name in PIECES)),
        "coin": coin_of(blueprint),
        "limits": _limits(blueprint, pieces),
        "confidence": Confidence(
            exploration=options.exploration,
            penalty=options.penalty,
            delta=options.delta,
            return_optimism=options.return_optimism,
            certainty=2.0 * math.log(1.0 / options.delta),
            printed_certainty=2.0 * math.log(1.0 / options.penalty),
        ),
    }


def coin_of(blueprint: Blueprint) -> Coin:
    return Coin(np.uint64(blueprint.seed), np.uint64(blueprint.run))


def _now(blueprint: Blueprint, races: bool) -> Any:
    problem = blueprint.problem
    now = np.zeros(1, dtype=NOW)
    now["horizon"], now["budget"], now["budget_left"] = problem.expected_rounds, problem.budget, problem.budget
    now["until"] = math.inf if problem.until is None else problem.until
    now["budget_rest"] = decimal_rest(problem.budget)
    now["racing"], now["race_trains"] = races, blueprint.options.race_trains
    now["cutoff"] = math.inf if races else blueprint.cutoff
    now["calibrate_at"] = 1
    now["n_stale"] = 0 if problem.person else problem.n_contexts
    now["must_read"] = not races  # given return probabilities hold from the first decision on
    return now


def _contexts(blueprint: Blueprint) -> Any:
    problem = blueprint.problem
    contexts = np.zeros(blueprint.n_rows, dtype=CONTEXT)
    of_row = blueprint.context_of_row
    contexts["weight"], contexts["deadline"] = problem.weights[of_row], problem.deadlines[of_row]
    contexts["is_stale"] = not problem.person
    return contexts


def _demand(blueprint: Blueprint) -> Any:
    """Contexts by their shares, or as they come; where people have features, all of those who came lately alike."""
    problem, given, n_rows = blueprint.problem, blueprint.problem.shares, blueprint.n_rows
    is_learned = given is None or bool(problem.person)
    demand = new_demand(
        weights=np.ones(n_rows) if given is None or problem.person else given,
        total=float(n_rows) if is_learned else 1.0,
        depths=reserve_depths(problem)[blueprint.context_of_row],
        n_depths=len(problem.reserves) + 1,
        is_learned=is_learned,
    )
    if problem.person:  # nobody came yet
        for one in (demand.weight, demand.total, demand.share, demand.of_depth):
            one[:] = 0.0
    return demand


def _tiers(problem: Problem) -> Any:
    tiers = np.zeros((5, len(problem.reserves) + 1))
    tiers[RESERVED, 1:] = np.cumsum([share * problem.budget for _, share in reversed(problem.reserves)])
    return tiers


def _limits(blueprint: Blueprint, pieces: tuple[str, ...]) -> Limits:
    options, problem = blueprint.options, blueprint.problem
    splits = "outcomes" in pieces
    until_end = options.until_end and problem.counted == "by_end"
    return Limits(
        longest_deadline=blueprint.longest_deadline,
        learnable_age=min(blueprint.longest_deadline, float(blueprint.ages[-1])) if splits else math.inf,
        own_deadlines="learn.early" in pieces and not problem.person,
        learns_shares=problem.shares is None and not problem.person,
        by_cutoff=options.return_by == "cutoff",
        until_end=until_end,
        reads=(options.return_probability == "estimated" or until_end or any(_has_stock_work(name) for name in pieces)),
        return_at_least=problem.return_at_least,
        stock_rounds=stock_rounds(
            n_contexts=problem.n_contexts,
            n_arms=problem.n_arms,
            n_features=blueprint.features.shape[1],
            n_ages=blueprint.ages.size,
            n_columns=blueprint.n_columns,
        ),
    )


def _has_prior(pieces: tuple[str, ...]) -> bool:
    """Whether what an arm may bring is in units of measured noise: before that is known, nothing is asked of it."""
    return any(piece.startswith("prior.") for piece in pieces)


def _has_stock_work(piece: str) -> bool:
    """Pieces that must be asked at every reading, whatever tau is."""
    return PIECES[piece] is forget or isinstance(getattr(PIECES[piece], "examine", None), Kernel)


def check_size(*, policy: PolicyOptions, problem: Problem) -> None:
    """Complain about a problem that is too large for this policy on this machine; nothing is allocated."""
    check_room(Blueprint(options=policy, problem=problem, seed=0), chosen_pieces(policy, problem))


def check_fit(*, policy: PolicyOptions, problem: Problem, seed: int) -> None:
    """Complain about options that do not fit the problem, before anything is made of them."""
    first_state(Blueprint(options=policy, problem=problem, seed=seed))


def grown(state: State) -> State:
    """The same state with twice the room wherever it is full: kernels never allocate, their caller does."""
    now, ring = state.now[0], state.ring
    capacity = ring.size
    if now["next"] - now["first"] >= capacity:
        larger = np.zeros(2 * capacity, dtype=DECISION)
        sequence = np.arange(now["first"], now["next"])
        larger[sequence & (2 * capacity - 1)] = ring[sequence & (capacity - 1)]
        state = state._replace(ring=larger)
        if has(state, "costs"):
            state = state._replace(costs=costs.grown(state.costs, int(now["first"]), int(now["next"])))
        if has(state, "people"):
            state = state._replace(people=people.grown(state.people, int(now["first"]), int(now["next"])))
    if has(state, "race"):
        state = state._replace(race=race.grown(state.race))
    if has(state, "people"):
        state = state._replace(people=people.with_more_levels(state.people))
    return state


check_pieces()
