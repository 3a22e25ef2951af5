"""Descriptions of scenarios: in words for display, in plain values for keys."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from pathlib import Path
from typing import Any

import numpy as np

from doral._cached import ByDigest
from doral.numerics.elementary import product
from doral.pages.notebook import card, note, small_table
from doral.problem.display import called, problem_in_words
from doral.simulation.scenario.people import Table
from doral.simulation.scenario.rows import Rows
from doral.simulation.scenario.scenario import Scenario

_MOST_ARMS, _MOST_CONTEXTS = 8, 12  # in a table
_MOST_LAWS = 6


def in_words(scenario: Scenario) -> str:
    """Return a scenario in one line."""
    asked = problem_in_words(scenario.problem).removeprefix("<Problem: ").removesuffix(">")
    if _is_guessed(scenario):
        n_contexts = scenario.problem.n_contexts
        asked = asked.replace(f"{n_contexts:,} contexts", f"{n_contexts:,} contexts that come equally often", 1)
    return f"<Scenario {called(scenario.name)!r}: {asked}, {_rewards(scenario)}>"


def scenario_card(scenario: Scenario) -> str:
    """Return a scenario as a card for notebooks."""
    problem = scenario.problem
    facts = [
        ("Asked", problem_in_words(problem).removeprefix("<Problem: ").removesuffix(">")),
        ("Rewards", f"{_rewards(scenario)}, noise {scenario.noise}"),
        ("Delays", _delays(scenario)),
    ]
    if scenario.people is not None:
        facts.append(
            ("People", f"{scenario.population:,}" + (", drawn for each run" if callable(scenario.people) else ""))
        )
    if scenario.availability is not None:
        facts.append(("Available", f"{min(scenario.availability):.0%} to {max(scenario.availability):.0%} of the time"))
    if scenario.paid != "always":
        facts.append(("Paid", scenario.paid.replace("_", " ") if isinstance(scenario.paid, str) else "by chance"))
    if scenario.arrivals is not None:
        facts.append(("Arrivals", repr(scenario.arrivals).strip("<>")))
    if scenario.phases > 1:
        facts.append(("Phases", str(scenario.phases)))
    return card(f"Scenario {called(scenario.name)}", facts, parts=_tables(scenario))


def _tables(scenario: Scenario) -> list[str]:
    """Who comes how often, and what arms bring there, where that is known before."""
    if scenario.people is not None:
        return []
    problem, means = scenario.problem, _known_means(scenario)
    names = problem.arm_names[:_MOST_ARMS] if means is not None else ()
    rows = [
        (
            called(name),
            f"{share:.3g}",
            *(() if means is None else (f"{mean:.3g}" for mean in means[j][: len(names)])),
        )
        for j, (name, share) in enumerate(zip(problem.context_names, scenario.shares, strict=True))
        if j < _MOST_CONTEXTS
    ]
    heads = ("Context", "Share", *(f"Mean of {called(name)}" for name in names))
    parts = [small_table(heads, rows, numbers=range(1, len(heads)))]
    if _is_guessed(scenario):
        parts.append(
            note("The problem learns the shares. Here contexts come equally often; shares=... says otherwise.")
        )
    if problem.n_contexts > _MOST_CONTEXTS or (means is not None and problem.n_arms > _MOST_ARMS):
        parts.append(note(f"The first of {problem.n_contexts:,} contexts and {problem.n_arms:,} arms."))
    return parts


def _known_means(scenario: Scenario) -> np.ndarray | None:
    if scenario.means is not None:
        return np.asarray(scenario.means)
    if scenario.theta is not None and scenario.features == "given":
        return product(np.array(scenario.theta), scenario.problem.features.T)
    return None


def _is_guessed(scenario: Scenario) -> bool:
    """Return whether the shares are defaults."""
    if scenario.people is not None or scenario.problem.shares is not None or scenario.problem.n_contexts == 1:
        return False
    return len({*scenario.shares}) == 1


def _rewards(scenario: Scenario) -> str:
    if scenario.people is not None:
        return "means by person"
    if scenario.rows is not None:
        return f"{scenario.rows.reward.size:,} observed rows"
    means = _known_means(scenario)
    if means is None:
        return "means drawn for each run"
    return f"means {means.min():.3g} to {means.max():.3g}"


def _delays(scenario: Scenario) -> str:
    if scenario.rows is not None:
        return "as in the rows"
    laws = list(dict.fromkeys(repr(law) for row in scenario.delays for law in row))
    more = len(laws) - _MOST_LAWS
    return "; ".join(laws[:_MOST_LAWS]) + (f"; and {more:,} more" if more > 0 else "")


def describe_scenario(scenario: Scenario) -> dict[str, Any]:
    """Return what decides the draws of a scenario, in values that JSON can hold: digests of arrays, sources of laws."""
    follows = ("delays", "means") if scenario.rows is not None else ()
    names = [field.name for field in dataclasses.fields(scenario) if field.name not in follows]
    return {name: _plain(getattr(scenario, name)) for name in names}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float | bool):
        return value
    if isinstance(value, tuple | list):
        return [_plain(one) for one in value]
    if isinstance(value, Rows):  # column by column, so that a message can say which differs
        columns = {name: getattr(value, name) for name in ("starts", "reward", "delay", "cost", "weight")}
        return {name: None if one is None else Table(one).digest for name, one in columns.items()}
    if isinstance(value, ByDigest):
        return {"digest": value.digest}
    if hasattr(value, "to_dict"):
        return value.to_dict()
    fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    described = {field.name: _plain(getattr(value, field.name)) for field in fields}
    if not callable(value):
        return described or repr(value)
    law = value if inspect.isroutine(value) else type(value)
    return {"law": f"{law.__module__}.{law.__qualname__}", **described, "source": _source_of(law)}


def _source_of(law: Any) -> str:
    """Return the digest of the file in which a law is defined; "" where it is in none."""
    try:
        path = inspect.getsourcefile(law)
    except (TypeError, OSError):  # the latter: a class of a notebook
        path = None
    return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path and Path(path).is_file() else ""
