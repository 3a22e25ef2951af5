from __future__ import annotations

import pickle

import numpy as np
import pytest

from doral.errors import MAX_SHOWN_CHARACTERS, DoralError, InvalidValue, UnknownName, shown


class Unprintable:
    def __repr__(self) -> str:
        raise RuntimeError("no")


def test_invalid_value_names_field_value_and_remedy() -> None:
    error = InvalidValue("budget", -3, "must be a finite number above 0")
    assert str(error) == "budget = -3: must be a finite number above 0"
    assert (error.field, error.value, error.remedy) == ("budget", -3, "must be a finite number above 0")


def test_the_tree_fits_into_the_builtin_one() -> None:
    assert issubclass(InvalidValue, DoralError)
    assert issubclass(InvalidValue, ValueError)
    assert issubclass(UnknownName, DoralError)
    assert issubclass(UnknownName, LookupError)


@pytest.mark.parametrize(
    "error",
    [InvalidValue("budget", -3, "must be above 0"), UnknownName("arm", "b", ["a", "c"])],
    ids=["invalid", "name"],
)
def test_errors_survive_the_way_back_from_a_worker_process(error: DoralError) -> None:
    copy = pickle.loads(pickle.dumps(error))
    assert type(copy) is type(error)
    assert str(copy) == str(error)
    assert vars(copy) == vars(error)


@pytest.mark.parametrize(
    "value",
    ["x" * 10_000, list(range(10_000)), np.zeros((50, 50)), 10**5_000, {"key": "x" * 10_000}, Unprintable()],
    ids=["text", "list", "array", "integer", "mapping", "unprintable"],
)
def test_shown_is_one_short_line_whatever_the_value(value: object) -> None:
    text = shown(value)
    assert 0 < len(text) <= MAX_SHOWN_CHARACTERS
    assert "\n" not in text


def test_unknown_name_offers_the_nearest() -> None:
    known = ["paper/diverse-pareto", "paper/similar-geometric"]
    error = UnknownName("scenario", "paper/divers-pareto", known)
    assert str(error) == "unknown scenario 'paper/divers-pareto'; did you mean 'paper/diverse-pareto'?"
    assert (error.kind, error.name, error.known) == ("scenario", "paper/divers-pareto", tuple(known))


def test_unknown_name_offers_several_when_several_are_near() -> None:
    message = str(UnknownName("arm", "clinic-x", ["clinic-a", "clinic-b", "warehouse"]))
    assert message == "unknown arm 'clinic-x'; did you mean 'clinic-b' or 'clinic-a'?"


@pytest.mark.parametrize(
    ("name", "known", "advice"),
    [
        ("zzz", ["a", "b"], "known: 'a', 'b'"),
        ("zzz", ["a"], "known: 'a'"),
        ("zzz", [], "no arm is known here"),
        (7, ["a", "b"], "known: 'a', 'b'"),
        ("zzz", [f"arm-{i}" for i in range(20)], "and 12 more"),
    ],
)
def test_unknown_name_falls_back_to_what_is_known(name: object, known: list[str], advice: str) -> None:
    message = str(UnknownName("arm", name, known))
    assert message.startswith(f"unknown arm {name!r}; ")
    assert message.endswith(advice)
