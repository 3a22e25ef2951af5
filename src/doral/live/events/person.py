"""Who a decision is for, as its event keeps it: what was said of them, and what that spoke for and against.

It is a text of its own beside the event, with a random word in it: the checksum chain covers only its hash, so that it
can be erased, and nobody can guess from the hash what it was. What is erased counts as missing from then on: as it is
on average.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Sequence
from typing import NamedTuple, Protocol, TypeAlias

from doral import _check
from doral.engine.engine import Who
from doral.engine.explain import Effects
from doral.errors import InvalidValue
from doral.person import Levels, checked_features, traits_of
from doral.problem import MAX_AGE, MAX_WEIGHT, MIN_AGE, MIN_WEIGHT, Problem

Values: TypeAlias = tuple[float | str | None, ...]  # numbers, words, and None for what is missing

_SALT_BYTES = 12


class Asked(NamedTuple):
    """What a request says of somebody, beyond the context."""

    features: object = None  # as the caller gave them
    weight: float | None = None
    deadline: float | None = None


NOTHING_ASKED = Asked()


class Said(Protocol):
    """What an event says of a person."""

    @property
    def person(self) -> str | None: ...
    @property
    def weight(self) -> float | None: ...
    @property
    def deadline(self) -> float | None: ...


class Person(NamedTuple):
    """What is kept of somebody."""

    salt: str
    features: Values
    base: float | None = None  # what the arm is thought to bring an average one, in units of reward
    effects: tuple[float, ...] | None = None  # what each feature adds to that


def asked_of(features: object, weight: object, deadline: object) -> Asked:
    """Checked as far as that can be done without looking at the campaign."""
    if features is None and weight is None and deadline is None:
        return NOTHING_ASKED
    if weight is not None:
        weight = _check.finite_number("weight", weight, at_least=MIN_WEIGHT, at_most=MAX_WEIGHT)
    if deadline is not None:
        deadline = _check.finite_number("deadline", deadline, at_least=MIN_AGE, at_most=MAX_AGE)
    return Asked(features, weight, deadline)


def person_for(problem: Problem, asked: Asked) -> str | None:
    """The text for an event; None where the problem knows no features. Whatever is wrong is said here."""
    if not problem.person:
        for field, value in zip(asked._fields, asked, strict=True):
            if value is not None:
                remedy = (
                    "this problem knows nothing of people but their context; name features with Problem(person=[...])"
                )
                raise InvalidValue(field, value, remedy)
        return None
    _check_deadline(problem, asked.deadline)
    given = {} if asked.features is None else asked.features
    return written(Person(secrets.token_hex(_SALT_BYTES), checked_features(problem.person, problem.missing, given)))


def _check_deadline(problem: Problem, deadline: float | None) -> None:
    if deadline is None:
        return
    if problem.paid == "on_answer":
        remedy = "cannot be said for a single request where costs are paid on answer; give contexts their deadlines"
        raise InvalidValue("deadline", deadline, remedy)
    longest = float(problem.deadlines.max())
    if deadline > longest:
        raise InvalidValue("deadline", deadline, f"must be at most {longest:g}, the longest of the problem")


def written(person: Person) -> str:
    """As JSON. Numbers are finite."""
    content: dict[str, object] = {"salt": person.salt, "features": person.features}
    if person.effects is not None:
        content |= {"base": person.base, "effects": person.effects}
    return json.dumps(content, separators=(",", ":"))


def read_person(text: str) -> Person:
    stored = json.loads(text)
    effects = stored.get("effects")
    return Person(
        stored["salt"], tuple(stored["features"]), stored.get("base"), None if effects is None else tuple(effects)
    )


def explained(text: str, effects: Effects) -> str:
    """The text with what was thought when the decision was made; without it where that is no number."""
    if not all(map(math.isfinite, (effects.base, *effects.effects))):
        return text
    return written(read_person(text)._replace(base=effects.base, effects=effects.effects))


def repeated(text: str | None) -> str | None:
    """For an event about the decision: who it is, and no more."""
    return None if text is None else written(read_person(text)._replace(base=None, effects=None))


def features_of(person: str | None) -> Values | None:
    """Return the features in such a text; None where they were erased, or where the problem knows none."""
    return None if person is None else read_person(person).features


def who_of(problem: Problem, levels: Levels, said: Said) -> Who:
    """Return a person as the engine wants it. Levels of categories are numbered in the order of the log."""
    if said.person is None:
        traits: Sequence[float] = [math.nan] * problem.n_traits
    else:
        traits = traits_of(problem.person, levels, read_person(said.person).features)
    return Who(
        traits, math.nan if said.weight is None else said.weight, math.nan if said.deadline is None else said.deadline
    )
