"""A campaign that ends with a date: eight weeks in minutes, a weekly rhythm, and other numbers than were expected."""

from __future__ import annotations

from doral.delays import Pareto
from doral.problem import Arm, Context, Problem
from doral.simulation.catalogue.paper import DEADLINE_ROUNDS, DIVERSE_PARETO_MINIMA, N_FEATURES, SHARES
from doral.simulation.scenario.arrivals import Arrivals, Bursts
from doral.simulation.scenario.scenario import Scenario

DAY = 1440.0  # minutes, as the deadline and the delays are
UNTIL = 56 * DAY
EXPECTED = 40_000
BUDGET = 10_000
HOURS = (0.1,) * 6 + (0.5, 1.0, 1.5, 2.0, 2.0, 1.5) + (1.0, 1.5, 1.5, 1.5, 1.5, 2.0) + (2.5, 2.0, 1.5, 1.0, 0.5, 0.2)
WEEKDAYS = (1.3, 1.2, 1.1, 1.1, 1.2, 0.7, 0.4)


def until(times_expected: float = 2.0) -> Scenario:
    """So many times as many arrive as are expected, a tenth of them in bursts of half an hour."""
    n_arms = len(DIVERSE_PARETO_MINIMA)
    problem = Problem(
        arms=[Arm(f"arm-{number}", features=[0.5] * N_FEATURES) for number in range(1, n_arms + 1)],
        contexts=[Context(f"context-{number}", share) for number, share in enumerate(SHARES, start=1)],
        budget=BUDGET,
        until=UNTIL,
        expected_arrivals=EXPECTED,
        deadline=DEADLINE_ROUNDS,
    )
    arrivals = Arrivals(
        number=times_expected * EXPECTED,
        day=DAY,
        hours=HOURS,
        weekdays=WEEKDAYS,
        bursts=Bursts(share=0.1, arrivals=50, length=30),
    )
    return Scenario(
        name="stress/until" if times_expected == 2.0 else f"stress/until@x{times_expected:g}",
        problem=problem,
        delays=[Pareto(minimum, 2) for minimum in DIVERSE_PARETO_MINIMA],
        features="drawn",
        arrivals=arrivals,
    )


SCENARIOS = {scenario.name: scenario for scenario in (until(),)}
