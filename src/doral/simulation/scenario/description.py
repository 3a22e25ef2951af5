"""Scenarios and policies in words, for people, and in plain values, for keys."""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from doral.numerics.elementary import product
from doral.pages.notebook import card, note, small_table
from doral.problem.display import called, problem_in_words
from doral.simulation.scenario.arrivals import Arrivals
from doral.simulation.scenario.calendar import Calendar
from doral.simulation.scenario.people import Crowd, Table
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


def _describe_law(value: Any) -> Any:
    """Return plain values: of a table its digest, of a law its name, its fields and the digest of its file."""
    if isinstance(value, Table):
        return {"shape": list(value.numbers.shape), "digest": value.digest}
    if isinstance(value, Crowd):
        return {"people": value.size, "features": list(value.columns), "digest": value.digest}
    if not callable(value):
        return value
    home = value if inspect.isroutine(value) else type(value)
    name = f"{home.__module__}.{home.__qualname__}"
    fields: dict[str, Any] = {}
    if dataclasses.is_dataclass(value):
        fields = {one.name: _plain(getattr(value, one.name)) for one in dataclasses.fields(value)}
    return {"law": name, **fields, "source": _source_of(home)}


def _plain(value: object) -> Any:
    if isinstance(value, Table | Crowd) or callable(value):
        return _describe_law(value)
    return value if isinstance(value, str | int | float | bool | None) else repr(value)


def _source_of(home: Any) -> str:
    """Return the digest of the file in which a law is defined; "" where it is in none."""
    try:
        path = inspect.getsourcefile(home)
    except (TypeError, OSError):  # the latter: a class of a notebook
        path = None
    return hashlib.sha256(Path(path).read_bytes()).hexdigest() if path and Path(path).is_file() else ""


_LAWS = ("people", "means", "paid", "speed", "frequencies")


def describe_scenario(scenario: Scenario) -> dict[str, Any]:
    """Return what decides the draws of a scenario, in values that JSON can hold."""
    return {
        "name": scenario.name,
        "problem": scenario.problem.to_dict(),
        "delays": [[law.to_dict() for law in row] for row in scenario.delays],
        "theta": scenario.theta,
        "means": None if scenario.people is not None else scenario.means,
        "features": scenario.features,
        "noise": scenario.noise,
        "noise_sd": scenario.noise_sd,
        "availability": scenario.availability,
        "shares": scenario.shares,
        "phases": scenario.phases,
        **({} if scenario.arrivals is None else {"arrivals": _of_arrivals(scenario.arrivals)}),
        **({} if scenario.people is None else _of_people(scenario)),
    }


def _of_arrivals(arrivals: Arrivals | Calendar) -> dict[str, Any]:
    if isinstance(arrivals, Calendar):
        return {"calendar": arrivals.digest, "arrivals": int(arrivals.times.size)}
    return asdict(arrivals)


def _of_people(scenario: Scenario) -> dict[str, Any]:
    """Return people and what is true of them: tables by their digests, laws by their sources."""
    return {
        **{field: _describe_law(getattr(scenario, field)) for field in _LAWS},
        "population": scenario.population,
        **({} if scenario.strata is None else {"strata": asdict(scenario.strata)}),
    }
