"""Scenarios and policies in plain values: what decides the numbers of a run, for keys of what was computed before."""

from __future__ import annotations

import inspect
from dataclasses import asdict
from typing import Any

from doral.engine.options import PolicyOptions
from doral.simulation.loaded_code import digest_of
from doral.simulation.rivals.catalogue import Rival
from doral.simulation.scenario.arrivals import Arrivals
from doral.simulation.scenario.calendar import Calendar
from doral.simulation.scenario.laws import described
from doral.simulation.scenario.scenario import Scenario

_LAWS = ("people", "means", "paid", "speed", "frequencies")


def of_scenario(scenario: Scenario) -> dict[str, Any]:
    """A scenario in values that JSON can hold."""
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
    """Who they are and what is true of them: tables by their digests, laws by their sources."""
    return {
        **{field: described(getattr(scenario, field)) for field in _LAWS},
        "population": scenario.population,
        **({} if scenario.strata is None else {"strata": asdict(scenario.strata)}),
    }


def of_policy(policy: object) -> dict[str, Any]:
    """A policy in values that JSON can hold; one in Python by the code that is loaded, and by what that holds."""
    return policy.to_dict() if isinstance(policy, PolicyOptions | Rival) else of_code(policy)


def of_truth(scenario: Scenario) -> dict[str, Any]:
    """All that decides what is drawn: also payments and rows, and laws that somebody wrote in Python."""
    if scenario.people is None:
        return of_scenario(scenario) | scenario.to_dict()
    laws = {field: getattr(scenario, field) for field in _LAWS}
    return of_scenario(scenario) | {"written": {field: of_code(law) for field, law in laws.items() if callable(law)}}


def of_code(written: object) -> dict[str, Any]:
    """Something in Python, as it is loaded; raises `NotKnown` where nobody can say whether it is what it was."""
    home: Any = written if inspect.isclass(written) or inspect.isroutine(written) else type(written)
    return {"name": f"{home.__module__}.{home.__qualname__}", "loaded": digest_of(written)}
