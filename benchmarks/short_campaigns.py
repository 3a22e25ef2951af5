"""What another policy is worth where time is short: scenarios cut to some 2,000 arrivals, as `make bench-peers` does.

    python benchmarks/short_campaigns.py [--policy doral-otf:bonus=to_come] [--runs 60] [--scenarios 'stress/*']

Beside `doral-otf`, on the same draws: by scenario, shares of the oracle's reward in percent, their difference with its
95% interval, and how many runs are below 0.8 of the mean of their policy. A mean hides bad runs. `--full` plays
scenarios as long as they are.
"""

from __future__ import annotations

import argparse
import fnmatch
import sys
from pathlib import Path

import numpy as np

import doral
from doral._arrays import Floats
from doral.cli.catalogue import parse_policy
from doral.simulation.results.differences import interval

sys.path.insert(0, str(Path(__file__).resolve().parent / "peers"))

import scenarios

BASE = "doral-otf"
FAR_BELOW = 0.8  # of the mean
SEED = 777


def below(shares: Floats) -> float:
    """Percent of runs that are far below their mean."""
    return 100.0 * float((shares < FAR_BELOW * shares.mean()).mean())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--policy", default=f"{BASE}:bonus=to_come", help="as on the command line")
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--scenarios", default="*", help="* stands for anything")
    parser.add_argument("--full", action="store_true")
    given = parser.parse_args()
    policies = [parse_policy(BASE), parse_policy(given.policy)]
    leads = []
    for name in fnmatch.filter(scenarios.names(), given.scenarios):
        scenario = scenarios.shortened(name, None if given.full else scenarios.ROUNDS)
        result = doral.simulate(policies, scenario, runs=given.runs, seed=SEED, progress=False)
        base, other = (
            np.array([100.0 * one.expected / one.oracle for one in result.of(scenario.name, policy.name)])
            for policy in policies
        )
        lead = interval(other - base)
        leads.append(lead.mean)
        print(
            f"{name:26} {base.mean():6.2f} {other.mean():6.2f}  {lead.mean:+6.2f} [{lead.low:+.2f}, {lead.high:+.2f}]"
            f"  far below the mean {below(base):4.1f} and {below(other):4.1f}% of {given.runs} runs",
            flush=True,
        )
    print(f"{'mean over scenarios':26} {'':13}  {np.mean(leads):+6.2f}")


if __name__ == "__main__":
    main()
