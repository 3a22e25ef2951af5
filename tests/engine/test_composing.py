"""Composing: from options to pieces (options.py, catalogue.py), and from pieces to a state (compose.py, guards.py)."""

from __future__ import annotations

import ast
import dataclasses
import re
import types
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doral
from doral.compiled import Hook, Kernel, Slot, kernel
from doral.engine import compose as compose_module
from doral.engine import hooks
from doral.engine.blueprint import Blueprint
from doral.engine.catalogue import DEFAULTS, PIECES, PLACES, words
from doral.engine.compose import check_fit, check_pieces, chosen_pieces, compose, compose_all, first_state
from doral.engine.guards import first_chosen, flag_name, if_chosen
from doral.engine.options import OPTION_NAMES, PolicyOptions, option_words
from doral.engine.presets import POLICY_NAMES, PRESETS, policy
from doral.engine.state import COMMON, has
from doral.errors import InvalidValue, UnknownName
from tests.engine.cases import OFFERS, completed
from tests.engine.interpreted import small_problem

JOINTS: dict[str, Hook] = {name: one for name, one in vars(hooks).items() if isinstance(one, Hook)}
EXPLICIT, SILENT = small_problem(), small_problem(feedback="silent")
ORACLE = np.full((1, 1, 1), 0.5)


def with_word(option: str, word: Any, base: str = "doral") -> PolicyOptions:
    options = {**policy(base).to_dict(), option: word}
    return PolicyOptions(**completed(options, EXPLICIT, option=option))


# --- words and pieces ------------------------------------------------------------------------------------------------

PLACE_WORDS = [(place, word) for place in PLACES for word in words(PLACES[place])]


@pytest.mark.parametrize(("place", "word"), PLACE_WORDS)
def test_every_word_of_a_place_leads_to_its_piece(place: str, word: str) -> None:
    module = PLACES[place]
    options = with_word(module.OPTION, word)
    found = [name for name in chosen_pieces(options, EXPLICIT) if name.startswith(f"{place}.")]
    if word == getattr(module, "EMPTY", None):
        assert found == []
    elif word in getattr(module, "ALSO", ()):
        assert found == [f"{place}.{module.word(options, EXPLICIT)}"]
    else:
        assert found == [f"{place}.{word}"]


@pytest.mark.parametrize(
    ("option", "value", "piece"),
    [
        ("screening", "race", "race"),
        ("dropping", "certified", "drop"),
        ("bonus", "calibrated", "doubt"),
        ("half_life", 10.0, "forget"),
        ("outcome_split", 0.5, "outcomes"),
        ("pending", "expected", "pending"),
        ("window_bias", True, "window"),
        ("choice", "unweighted", "unweighted"),
        ("explore", 0.02, "explore"),
        ("explore", 0.02, "odds"),
        ("return_probability", "estimated", "curves"),
        ("return_probability", "one", "unwatched"),
        ("start_share", 0.1, "start"),
    ],
)
def test_every_other_piece_is_in_if_its_option_says_so(option: str, value: Any, piece: str) -> None:
    assert piece in chosen_pieces(with_word(option, value), EXPLICIT)
    alike = {value} | ({"calibrated", "ahead", "to_come"} if option == "bonus" else set())
    other = next(one for one in _other_values(option) if one not in alike)
    without: dict[str, Any] = {} if option == "return_probability" else {"return_probability": "one"}
    assert piece not in chosen_pieces(dataclasses.replace(with_word(option, other), **without), EXPLICIT)


def _other_values(option: str) -> tuple[Any, ...]:
    return option_words().get(option) or ((0.0,) if option in ("explore", "start_share") else (None, False))


def test_the_list_of_other_pieces_is_complete() -> None:
    single = {name for name in PIECES if "." not in name}
    assert single == {
        "race", "drop", "doubt", "forget", "outcomes", "pending", "window", "unweighted", "curves", "unwatched",
        "start", "explore", "odds", "costs", "uplift", "forecast",
        "people", "people_pending", "people_shift", "people_costs", "predicted",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "problem", "piece"),
    [
        ({"return_optimism": 0.5}, EXPLICIT, "index.doubtful"),
        ({"sampling": "thompson", "prior": "noise"}, EXPLICIT, "odds"),
        ({"rate": "printed", "pacing": "coin"}, EXPLICIT, "rate.printed_coin"),
        ({}, SILENT, "returns.silent"),
        ({"cost": "learned"}, OFFERS.problem, "costs"),
        ({"learner": "auto"}, SILENT, "learn.early"),
        ({"learner": "auto"}, SILENT, "returns.early"),
        ({"learner": "auto", "return_probability": "one"}, SILENT, "learn.scaled"),
        ({"learner": "auto"}, EXPLICIT, "learn.returned"),
        ({"learner": "thinned"}, EXPLICIT, "window"),
        ({"return_probability": "one", "censoring": "kaplan_meier"}, EXPLICIT, "curves"),
    ],
)
def test_pieces_that_a_combination_asks_for(options: dict[str, Any], problem: doral.Problem, piece: str) -> None:
    assert piece in chosen_pieces(policy("doral", **options), problem)


def test_told_apart_outcomes_need_no_weights_where_feedback_is_silent() -> None:
    options = policy("doral-otf", outcome_split=0.5)
    assert "outcomes" in chosen_pieces(options, EXPLICIT)
    assert "outcomes" not in chosen_pieces(options, SILENT)


def test_hidden_alternatives_are_no_words() -> None:
    for place in PLACES.values():
        for hidden in getattr(place, "HIDDEN", ()):
            assert hidden not in words(place)
            with pytest.raises(InvalidValue, match="must be one of"):
                policy("doral", **{place.OPTION: hidden})


def test_presets_differ_in_their_pieces_or_in_a_number() -> None:
    kinds = {dataclasses.replace(policy(name), name="any") for name in POLICY_NAMES}
    assert len(kinds) == len(POLICY_NAMES)
    assert set(PRESETS) <= set(POLICY_NAMES)


# --- what cannot go together -----------------------------------------------------------------------------------------

REFUSED: list[tuple[str, dict[str, Any], str, Any, str]] = [
    ("doral", {"accept": 0}, "accept", 0, "from 1 to 100,000"),
    ("doral", {"reservoir": 1}, "reservoir", 1, "from 2 to 100,000"),
    ("doral", {"products": [("age",)]}, "products", ("age",), "pairs of names"),
    ("doral", {"min_answers": 0}, "min_answers", 0, "from 1 to 1,000,000,000"),
    ("doral", {"race_delta": 0.9}, "race_delta", 0.9, "at most 0.5"),
    ("doral", {"tail_exponent": 0.0}, "tail_exponent", 0.0, "at least 0.001"),
    ("doral", {"race_budget_share": 1.5}, "race_budget_share", 1.5, "at most 1"),
    ("doral", {"penalty": 0.0}, "penalty", 0.0, "at least 1e-09"),
    ("doral", {"delta": 2.0}, "delta", 2.0, "at most 1"),
    ("doral", {"exploration": -1.0}, "exploration", -1.0, "at least 0"),
    ("doral", {"return_optimism": -1.0}, "return_optimism", -1.0, "at least 0"),
    ("doral", {"half_life": 0.0}, "half_life", 0.0, "at least 0.001"),
    ("doral", {"outcome_split": float("nan")}, "outcome_split", None, "finite"),
    ("doral", {"periods": 0}, "periods", 0, "from 1 to 1,000,000,000"),
    ("doral", {"curve_points": 1}, "curve_points", 1, "from 2 to 1,000"),
    ("doral", {"cutoff_share": 0.0}, "cutoff_share", 0.0, "above 0"),
    ("doral", {"cutoff": 0.5}, "cutoff", 0.5, "at least 1"),
    ("doral", {"cutoff": "soon"}, "cutoff", "soon", "adaptive, none or None"),
    ("doral", {"race_trains": 1}, "race_trains", 1, "True or False"),
    ("d-linucb", {"cutoff": "adaptive"}, "cutoff", "adaptive", "needs return_probability='estimated'"),
    ("doral", {"dropping": "certified"}, "dropping", "certified", "needs prior='noise' or 'shared'"),
    ("doral-otf", {"choice": "unweighted"}, "dropping", "certified", "needs choice='weighted'"),
    ("doral", {"sampling": "thompson"}, "sampling", "thompson", "needs prior='noise' or 'shared'"),
    ("d-lints", {"return_optimism": 0.5}, "return_optimism", 0.5, "must be 0 with sampling='thompson'"),
    ("doral", {"sampling": "directed", "choice": "unweighted"}, "choice", "unweighted", "needs choice='weighted'"),
    ("doral", {"explore": 1.5}, "explore", 1.5, "at most 1"),
    ("d-lints", {"draws": 0}, "draws", 0, "1"),
    ("doral", {"bonus": "calibrated"}, "bonus", "calibrated", "needs prior='noise' or 'shared'"),
    ("doral", {"features": "none"}, "features", "none", "bonus='calibrated'"),
    ("d-lints", {"features": "none", "dropping": "certified"}, "features", "none", "bonus='calibrated'"),
    ("doral", {"bonus": "ahead"}, "bonus", "ahead", "needs prior='noise' or 'shared'"),
    ("d-linucb", {"start_share": 0.1}, "start_share", 0.1, "needs prior='noise', 'shared' or 'cells'"),
    ("d-alp", {"learner": "early"}, "learner", "early", "needs return_probability='estimated'"),
    ("doral", {"outcome_split": 0.5, "learner": "early"}, "outcome_split", 0.5, "needs learner='returned' or 'auto'"),
    ("doral", {"learner": "thinned", "prior": "noise"}, "prior", "noise", "thinned learner"),
    ("doral", {"learner": "thinned", "pending": "expected"}, "pending", "expected", "thinned learner"),
    ("doral", {"outcome_split": 0.5, "learner": "scaled"}, "outcome_split", 0.5, "needs learner='returned' or 'auto'"),
    ("d-alp", {"outcome_split": 0.5}, "outcome_split", 0.5, "needs return_probability='estimated'"),
    ("doral", {"outcome_split": 0.5, "half_life": 9.0}, "outcome_split", 0.5, "cannot be combined with half_life"),
    ("oracle", {"choice": "unweighted"}, "choice", "unweighted", "sampling='oracle' has no index"),
]  # fmt: skip


@pytest.mark.parametrize(("base", "options", "field", "value", "remedy"), REFUSED)
def test_a_piece_says_what_it_cannot_be_combined_with(
    base: str, options: dict[str, Any], field: str, value: Any, remedy: str
) -> None:
    with pytest.raises(InvalidValue) as caught:
        policy(base, **options)
    message = str(caught.value)
    assert message.startswith(f"{field} = {value!r}: " if value is not None else f"{field} = ")
    assert remedy in message


def test_every_piece_that_checks_is_seen_to_refuse_something() -> None:
    """By its own `check`, called alone."""
    refusing = set()
    for base, options, _, _, _ in REFUSED:
        # as it stands, before it is checked
        unchecked = types.SimpleNamespace(**{**policy(base).to_dict(), **options})
        for name, piece in {**PIECES, **PLACES}.items():
            try:
                getattr(piece, "check", lambda _: None)(unchecked)
            except InvalidValue:
                refusing.add(name)
            except TypeError:
                pass  # of set_fields: the options are no dataclass, and the check has passed
    checking = {name for name, piece in {**PIECES, **PLACES}.items() if hasattr(piece, "check")}
    assert refusing == checking


def test_what_the_problem_lacks_is_said() -> None:
    with pytest.raises(InvalidValue, match="takes silence for a no, .* or take doral-otf"):
        check_fit(policy=policy("d-linucb", learner="scaled"), problem=small_problem(deadline=None), seed=0)
    with pytest.raises(InvalidValue, match="return_probability = 'oracle': needs the true delays"):
        check_fit(policy=policy("doral/literal"), problem=EXPLICIT, seed=0)
    with pytest.raises(InvalidValue, match="sampling = 'oracle': needs the true values, which only a simulation has"):
        check_fit(policy=policy("oracle"), problem=EXPLICIT, seed=0)
    with pytest.raises(InvalidValue, match="accept = 4: must be at most the number of arms, 3"):
        check_fit(policy=policy("doral", accept=4), problem=EXPLICIT, seed=0)
    check_fit(policy=policy("doral", accept=3), problem=EXPLICIT, seed=0)


def test_a_misspelt_option_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="exploration"):
        policy("doral", exploratoin=1.0)


def test_options_have_one_owner() -> None:
    owners = [base.__annotations__ for base in PolicyOptions.__mro__[1:] if "__annotations__" in vars(base)]
    names = [name for owner in owners for name in owner]
    assert sorted(names) == sorted(OPTION_NAMES)
    assert all(isinstance(one, dict) for one in owners)


# --- states ----------------------------------------------------------------------------------------------------------


def state_of(name: str, monkeypatch: pytest.MonkeyPatch, way: str, **options: Any) -> Any:
    monkeypatch.setenv("DORAL_COMPOSE", way)
    return first_state(
        Blueprint(options=policy(name, **options), problem=EXPLICIT, seed=0, oracle=ORACLE, true_values=ORACLE)
    )


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_a_preset_has_the_memories_of_its_pieces_and_no_others(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    alone, with_all = state_of(name, monkeypatch, ""), state_of(name, monkeypatch, "any")
    pieces = chosen_pieces(policy(name), EXPLICIT)
    memories = {
        str(getattr(PIECES[one], "MEMORY", one.rpartition(".")[2])) for one in pieces if hasattr(PIECES[one], "memory")
    }
    assert set(alone._fields) == {*COMMON, *memories}
    assert set(with_all._fields) > set(alone._fields)
    for state in (alone, with_all):
        assert {one for one in PIECES if has(state, flag_name(one))} == set(pieces)


def test_what_is_no_preset_runs_on_all_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    preset = state_of("doral", monkeypatch, "", accept=2)  # the same pieces
    other = state_of("doral", monkeypatch, "", half_life=9.0)
    assert type(preset) is compose(chosen_pieces(policy("doral"), EXPLICIT))
    assert type(other) is compose_all()


def test_two_pieces_in_one_slot_are_noticed() -> None:
    with pytest.raises(AssertionError, match=r"slot learn_answer is filled by several of .*thinned"):
        compose((*chosen_pieces(policy("doral"), EXPLICIT), "learn.thinned"))


def test_a_slot_that_nobody_fills_is_noticed() -> None:
    with pytest.raises(TypeError, match=r"slot \w+ is filled by none of .*race"):
        compose(("race",))


@pytest.mark.parametrize(
    ("piece", "kernel", "slip", "message"),
    [
        ("index.thompson", "score", "scor", "pieces of index/ have a kernel 'score'"),
        ("pending", "on_commit", "on_comit", "no hook or slot is called 'on_comit'; did you mean 'on_commit'"),
    ],
)
def test_a_misspelt_kernel_is_noticed(
    piece: str, kernel: str, slip: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = PIECES[piece]
    monkeypatch.setattr(module, slip, getattr(module, kernel), raising=False)
    monkeypatch.delattr(module, kernel)
    with pytest.raises(TypeError, match=message):
        check_pieces()


@pytest.mark.parametrize("name", POLICY_NAMES)
def test_every_slot_is_filled_once_and_every_hook_by_those_who_have_it(name: str) -> None:
    pieces = chosen_pieces(policy(name), EXPLICIT)
    found = compose(pieces).composition.hooks
    assert set(found) == set(JOINTS)
    for joint in JOINTS.values():
        offered = [getattr(PIECES[piece], joint.name) for piece in pieces if _has_kernel(PIECES[piece], joint.name)]
        if isinstance(joint, Slot):
            assert len(found[joint.name]) == 1
            expected = offered or [getattr(DEFAULTS, joint.name)]
            assert list(found[joint.name]) == expected
        else:
            assert list(found[joint.name]) == offered


def _has_kernel(module: Any, name: str) -> bool:
    return isinstance(getattr(module, name, None), Kernel)


# --- guards ----------------------------------------------------------------------------------------------------------


@kernel
def _five(state: Any) -> int:
    return 5


@kernel
def _six(state: Any) -> int:
    return 6


@kernel
def _seven(state: Any) -> int:
    return 7


@kernel
def _note(state: Any) -> None:
    state.seen.append(1)


def _chosen(**flags: bool) -> Any:
    return types.SimpleNamespace(chosen=types.SimpleNamespace(**flags), seen=[])


@pytest.mark.usefixtures("interpreted")
def test_a_guarded_slot_asks_which_piece_is_chosen() -> None:
    both: Mapping[str, Any] = {"a_b": _five, "c": _six}
    with_default = first_chosen(both, _seven)  # type: ignore[arg-type]
    assert with_default(_chosen(a_b=True, c=False)) == 5
    assert with_default(_chosen(a_b=False, c=True)) == 6
    assert with_default(_chosen(a_b=False, c=False)) == 7
    assert first_chosen(both, None)(_chosen(a_b=False, c=False)) == 6  # the last one is who is left


@pytest.mark.usefixtures("interpreted")
def test_a_guarded_hook_runs_if_its_piece_is_chosen() -> None:
    guarded = if_chosen(flag_name("a.b"), _note)  # type: ignore[arg-type]
    for flag in (True, False):
        state = _chosen(a_b=flag)
        guarded(state)
        assert state.seen == [1] * flag


def test_all_pieces_are_offered_to_the_composition_of_all() -> None:
    found = compose_all().composition.hooks
    for joint in JOINTS.values():
        offers = sum(_has_kernel(piece, joint.name) for piece in PIECES.values())
        assert len(found[joint.name]) == (1 if isinstance(joint, Slot) else offers)


# --- names of kernels ------------------------------------------------------------------------------------------------

SOURCES = Path(doral.__file__).parent
HOOKS = SOURCES / "engine" / "hooks.py"


def _modules_of_pieces() -> Iterator[tuple[str, Any]]:
    yield from PIECES.items()
    yield "defaults", DEFAULTS


@cache
def _imported_elsewhere() -> set[tuple[str, str]]:
    """(module, name) of everything that one module of the package takes from another."""
    found: set[tuple[str, str]] = set()
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.module:
                found |= {(node.module, alias.name) for alias in node.names}
    return found


def strange_kernels(name: str, module: Any, used: set[tuple[str, str]]) -> list[str]:
    """Kernels that a piece shows and that nobody will ever call."""
    return [
        f"{name}.{attribute}"
        for attribute, one in vars(module).items()
        if isinstance(one, Kernel)
        and one.function.__module__ == module.__name__
        and not attribute.startswith("_")
        and attribute not in JOINTS
        and (module.__name__, attribute) not in used
    ]


def test_no_kernel_of_a_piece_has_a_name_that_nobody_calls() -> None:
    """A misspelt hook would do nothing, and silently."""
    used = _imported_elsewhere()
    assert [one for name, module in _modules_of_pieces() for one in strange_kernels(name, module, used)] == []


def test_a_misspelt_hook_would_be_found() -> None:
    module: Any = types.ModuleType("doral.engine.pieces.misspelt")

    def on_anwser(state: Any, slot: int, reward: float, age: float) -> None:
        """Meant to be on_answer."""

    on_anwser.__module__ = module.__name__
    module.on_anwser = kernel(on_anwser)
    assert strange_kernels("misspelt", module, _imported_elsewhere()) == ["misspelt.on_anwser"]


def test_kernels_take_what_their_hook_gives() -> None:
    """The same arguments in the same order, by their names."""
    functions = [one for one in ast.parse(HOOKS.read_text()).body if isinstance(one, ast.FunctionDef)]
    wanted = {one.name: [argument.arg for argument in one.args.args] for one in functions}
    assert set(wanted) == set(JOINTS)
    for name, module in _modules_of_pieces():
        for joint in JOINTS:
            if _has_kernel(module, joint):
                function = getattr(module, joint).function
                given = list(function.__code__.co_varnames[: function.__code__.co_argcount])
                assert given == wanted[joint], f"{name}.{joint}"


def test_defaults_fill_slots_only() -> None:
    for attribute, one in vars(DEFAULTS).items():
        if isinstance(one, Kernel) and one.function.__module__ == DEFAULTS.__name__:
            assert isinstance(JOINTS[attribute], Slot), attribute


def test_every_joint_is_called_and_answered() -> None:
    """A hook that no event calls, or that no piece answers, has no meaning."""
    sources = "\n".join(path.read_text() for path in SOURCES.rglob("*.py"))
    called = set(re.findall(r"(?<!def )\b(\w+)\(state", sources))
    for name in JOINTS:
        assert name in called, name
        assert any(_has_kernel(piece, name) for piece in PIECES.values()), name


def test_compiling_takes_about_as_long_as_it_is_said() -> None:
    """Whoever waits is told so: the composition of all pieces takes longest."""
    assert compose_module.PRESET_SECONDS < compose_module.ANY_SECONDS
    assert compose_all().compile_seconds == compose_module.ANY_SECONDS
    assert compose(chosen_pieces(policy("doral"), EXPLICIT)).compile_seconds == compose_module.PRESET_SECONDS
