"""Scenarios and policies in plain values: what decides the numbers of a run, for keys of what was computed before."""

from __future__ import annotations

import hashlib
import inspect
import pickle
import secrets
from dataclasses import asdict
from typing import Any

from doral.engine.options import PolicyOptions
from doral.simulation.arrivals import Arrivals
from doral.simulation.calendar import Calendar
from doral.simulation.laws import described, source_of
from doral.simulation.rivals.catalogue import Rival
from doral.simulation.scenario import Scenario


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
    fields = ("people", "means", "paid", "speed", "frequencies")
    return {
        **{field: described(getattr(scenario, field)) for field in fields},
        "population": scenario.population,
        **({} if scenario.strata is None else {"strata": asdict(scenario.strata)}),
    }


def of_policy(policy: object) -> dict[str, Any]:
    """A policy in values that JSON can hold; one in Python by the file that it is in, and by what it holds.

    One that cannot be pickled is never the same as before.
    """
    if isinstance(policy, PolicyOptions | Rival):
        return policy.to_dict()
    home = policy if inspect.isclass(policy) or inspect.isroutine(policy) else type(policy)
    try:
        held = hashlib.sha256(pickle.dumps(policy)).hexdigest()
    except Exception:  # noqa: BLE001  (whatever a foreign object raises)
        held = secrets.token_hex(32)
    return {"policy": f"{home.__module__}.{home.__qualname__}", "source": source_of(home), "held": held}
