"""How often alarms are raised where nothing is wrong, and how soon where something is, on simulated campaigns.

    python benchmarks/alarms.py --campaigns 20

Each campaign has three arms, three contexts and 3,000 arrivals in 20 days; answers take 0.3 to 2 days on average. From
60% of the way on, something is wrong with the arm that is used most.
"""

from __future__ import annotations

import argparse
import heapq
import time
from dataclasses import dataclass

import numpy as np

import doral
from doral.service.operations.keeper import Watched

DAY_S = 86_400.0
ARRIVALS, DAYS, WRONG_FROM, LOOK_EVERY = 3_000, 20.0, 0.6, 60
CONTEXTS = {"young": 0.5, "middle": 0.3, "old": 0.2}
JUDGED = ("arm-silent", "budget-early", "curve-moved", "pace-off")  # the rules that judge chance


@dataclass(frozen=True, kw_only=True)
class World:
    """What is simulated.

    Attributes:
        name: In words.
        fault: "silent": no answer to one arm any more; "slow": they take three times as long; "rare": half as many.
        reports: When answers are heard of: "at once", "by day" (nothing from 0 to 8 o'clock) or "daily".
        policy: Of the campaign.
        budget: For each arrival.
    """

    name: str
    fault: str = ""
    reports: str = "at once"
    policy: str = "doral-otf"
    budget: float = 0.8


WORLDS = (
    World(name="nothing is wrong"),
    World(name="nothing is wrong, little budget", budget=0.3),
    World(name="nothing is wrong, no answers at night", reports="by day"),
    World(name="nothing is wrong, answers are reported once a day", reports="daily"),
    World(name="an arm falls silent", fault="silent"),
    World(name="answers take three times as long", fault="slow"),
    World(name="half as many answer", fault="rare"),
    World(name="spends without a pace", policy="random"),
    World(name="cannot spend its budget", policy="random", budget=2.5),
)


def heard_at(world: World, at: float, rng: np.random.Generator) -> float:
    if world.reports == "daily":
        return float(np.ceil(at / DAY_S) * DAY_S)
    hour = at % DAY_S / 3_600
    return at + (8 - hour) * 3_600 + rng.exponential(600) if world.reports == "by day" and hour < 8 else at


def run(world: World, seed: int) -> dict[str, int]:
    """At which arrival each rule was raised first; where an arm is at fault, only what is raised about it later."""
    rng = np.random.default_rng(seed)
    arms = [doral.Arm(f"arm{i}", cost=1.0 + i / 2, features=rng.normal(size=3).tolist()) for i in range(3)]
    problem = doral.Problem(
        arms=arms, contexts=CONTEXTS, budget=world.budget * ARRIVALS, horizon=ARRIVALS, deadline=10 * DAY_S
    )
    began = time.time() - 60 * DAY_S
    value, chance = rng.uniform(0.1, 0.9, size=(3, 3)), rng.uniform(0.4, 0.8, size=3)
    mean_s = rng.uniform(0.3, 2.0, size=3) * DAY_S
    times = began + np.cumsum(rng.exponential(DAYS * DAY_S / ARRIVALS, ARRIVALS))
    contexts = rng.choice(3, size=ARRIVALS, p=list(CONTEXTS.values()))
    found: dict[str, int] = {}
    with doral.open("memory://") as store:
        campaign = store.create("x", problem, policy=world.policy, seed=seed, at=began)
        watched, due, broken = Watched(campaign, store.books), list[tuple[float, str, int, float]](), -1
        raised: set[tuple[str, str]] = set()
        for place, at in enumerate(times):
            if world.fault and broken < 0 and place >= WRONG_FROM * ARRIVALS:
                broken = int(np.argmax([one.plays for one in campaign.report().arms]))
                if world.fault == "silent":
                    due = [one for one in due if one[2] != broken]
                    heapq.heapify(due)
            answers = []
            while due and due[0][0] <= at:
                answers.append(heapq.heappop(due))
            campaign.feedback_many([{"decision_id": one[1], "reward": one[3], "at": one[0]} for one in answers])
            made = campaign.decide(list(CONTEXTS)[contexts[place]], at=float(at))
            if made.arm is not None:
                arm = int(made.arm[3:])
                is_slow, is_rare = (arm == broken and world.fault == one for one in ("slow", "rare"))
                answers_at_all = rng.random() < chance[arm] * (0.5 if is_rare else 1.0)
                delay_s = rng.exponential(mean_s[arm] * (3.0 if is_slow else 1.0))
                if answers_at_all and not (world.fault == "silent" and arm == broken):
                    reward = float(rng.random() < value[contexts[place], arm])
                    heapq.heappush(due, (heard_at(world, float(at) + delay_s, rng), made.id, arm, reward))
            if place % LOOK_EVERY == 0:
                new, over = watched.judge(raised, float(at))
                raised = (raised | {(one.rule, one.subject) for one in new}) - set(over)
                for one in new:
                    if one.rule in JUDGED and (not world.fault or one.subject == f"arm{broken}"):
                        found.setdefault(one.rule, place)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--campaigns", type=int, default=20, help="of each kind")
    n = parser.parse_args().campaigns
    print("| campaigns | raised in, of", n, "| arrivals until then, median (most) |\n| --- | --- | --- |")
    for world in WORLDS:
        start = WRONG_FROM * ARRIVALS if world.fault else 0.0
        runs = [run(world, seed) for seed in range(n)]
        late = {rule: [one[rule] - start for one in runs if rule in one] for rule in JUDGED}
        told = {rule: some for rule, some in late.items() if some}
        often = ", ".join(f"{rule} {len(some)}" for rule, some in told.items()) or "0"
        when = ", ".join(f"{rule} {np.median(some):.0f} ({max(some):.0f})" for rule, some in told.items())
        print(f"| {world.name} | {often} | {when} |", flush=True)


if __name__ == "__main__":
    main()
