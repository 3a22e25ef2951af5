"""What policies earn on problems that they were not made for.

    python benchmarks/random_problems --seeds 1000:1100 [--policies doral-otf,doral-otf:bonus=to_come] [--jobs 2]
    python benchmarks/random_problems --named all

Problems are drawn from a wide space (`space.py` has the table of it), one for each seed: 300 to 20,000 arrivals, 2 to
20 arms, 1 to 20 contexts. The policies of `--policies` are judged beside a panel of rivals on the same draws. The score
is the share of the oracle in expected reward, in percent: the gain over the baseline where a problem has one. Where
arrivals have features, policies that know contexts alone play strata of them (`Scenario.stratified`). A policy that
cannot play a problem is left out of it with all others, and the report says so.

The report gives means by band of arrivals with 95% intervals over problems, paired differences to the single rival that
is best in the band, how often a policy is far behind the best in hindsight, means by property, how many runs are far
below the mean of their policy, and the ten worst problems with the commands that play them again. What rivals in Python
have reached is kept in a cache, so that after a change to the engine only engine policies are played.

`--named` plays problems on which an earlier default failed (`named.py`).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from random_problems.named import NAMED
from random_problems.panel import BANDS, CACHE, play_panel, problems_of, split_policies
from random_problems.report import Report

PANEL = "beta-ts-lp,explore-then-lp,d-lints,eva,wait-linucb"
PARTS = ("bands", "behind", "properties", "worst")


def seeds_of(word: str) -> range:
    """Return the seeds of A:B, B excluded."""
    first, colon, last = word.partition(":")
    try:
        return range(int(first), int(last) if colon else int(first) + 1)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{word!r} must be A:B, seeds from A to below B") from None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=seeds_of, default=seeds_of("1000:1100"), metavar="A:B")
    parser.add_argument("--named", choices=("all", *NAMED), nargs="+", help="play these in place of random problems")
    parser.add_argument("--policies", type=split_policies, default=["doral-otf"], help="judged; as on the command line")
    parser.add_argument("--rivals", type=split_policies, default=PANEL.split(","), help=f"default: {PANEL}; '': none")
    parser.add_argument("--runs", type=int, default=4, help="of each problem")
    parser.add_argument("--bands", nargs="+", choices=tuple(BANDS), default=tuple(BANDS), help="by arrivals")
    parser.add_argument("--report", nargs="+", choices=PARTS, default=PARTS, help="which parts")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--cache", type=Path, default=CACHE, help="of what rivals in Python have reached")
    given = parser.parse_args()
    problems = problems_of(given.seeds, given.bands)
    if given.named is not None:
        problems = [f"named/{name}" for name in (NAMED if "all" in given.named else given.named)]
    policies = [*given.policies, *(rival for rival in given.rivals if rival not in given.policies)]
    played = play_panel(policies, problems, runs=given.runs, jobs=given.jobs, cache=given.cache, progress=sys.stderr)
    if given.named is not None:
        for one in played:
            shares = ", ".join(f"{policy} {sum(of) / len(of):.1f}" for policy, of in one.shares.items())
            print(f"{one.problem}: {shares}")
        return
    print("\n".join(Report(played, judged=given.policies, rivals=given.rivals).lines(given.report)))


if __name__ == "__main__":
    main()
