"""Plays an adapter on tapes: arrivals one by one, answers handed over when they return, the budget kept exactly.

It needs NumPy and nothing else, and any Python from 3.8 on: it runs in the environment of each peer, where DORAL is not
installed. What it does is what `doral.simulate` does with a policy written in Python, to the bit;
`tests/simulation/test_peers.py` holds it to that.
"""

from __future__ import annotations

import argparse
import bisect
import importlib.util
import json
import math
import resource
import sys
import time
from decimal import Decimal
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
LOOK_EVERY = 64  # rounds between two looks at the clock


class Problem:
    """What is asked, and nothing of what is true. README.md lists the attributes."""

    def __init__(self, told: dict, arm_features: np.ndarray) -> None:
        self.__dict__.update(told)
        self.arm_features = arm_features  # (A, k), k may be 0
        self.costs = np.array(told["costs"])  # (J, A)
        self.weights, self.deadlines = np.array(told["weights"]), np.array(told["deadlines"])  # (J,)


class Arrival:
    """Somebody has arrived."""

    __slots__ = (
        *("round", "context", "available", "budget_left", "rounds_left", "time", "until"),
        *("x", "features", "costs"),
    )


class Answer:
    """An answer to an earlier decision, or that none came within its deadline."""

    __slots__ = ("arm", "context", "decided", "delay", "features", "is_in_time", "paid", "reward", "round", "x")


class Tape:
    """One run of a scenario, as `export.py` wrote it; tables are mapped into memory, not read."""

    def __init__(self, folder: Path) -> None:
        told = json.loads((folder / "problem.json").read_text())
        for name in ("budget", "until"):
            told[name] = math.inf if told[name] is None else told[name]
        told["deadlines"] = [math.inf if one is None else one for one in told["deadlines"]]

        def table(name: str) -> np.ndarray | None:
            path = folder / (name + ".npy")
            return np.load(path, mmap_mode="r") if path.exists() else None

        self.problem = Problem(told, np.load(folder / "arm_features.npy"))
        self.context = np.load(folder / "context.npy").tolist()
        self.x, self.features = np.load(folder / "x.npy"), table("features")
        self.reward, self.delay, self.worth = table("reward"), table("delay"), table("worth")
        self.available, self.paid_share = table("available"), table("paid_share")
        times, nothing = table("times"), table("nothing")
        self.times = None if times is None else times.tolist()
        self.nothing = None if nothing is None else nothing.tolist()
        self.rounds = len(self.context)


class Played:
    """What came of it."""

    def __init__(self) -> None:
        self.reward = 0.0  # within the deadline, beyond doing nothing
        self.expected = 0.0  # what the chosen arms were worth, whatever luck made of it
        self.decisions = 0
        self.spend = 0.0
        self.rounds = 0  # how far it came
        self.seconds = 0.0  # processor time of policy and player together
        self.choices = []  # by round: an arm, or None


def play(policy, tape: Tape, limit_s: float = math.inf) -> Played:
    """The whole tape, or as much of it as the limit (seconds of the wall clock) allows."""
    problem, times, horizon, played = tape.problem, tape.times, tape.rounds, Played()
    control, silent, counted_later = problem.control, problem.feedback == "silent", problem.counted != "by_end"
    deadlines, weights = problem.deadlines.tolist(), problem.weights.tolist()
    exact = [[Decimal(repr(cost)) for cost in row] for row in problem.costs.tolist()]
    costs_told = [tuple(row) for row in problem.costs.tolist()]
    left = Decimal(repr(problem.budget))
    arms = tuple(arm for arm in range(problem.n_arms) if arm != control)
    dearest = [max(row) for row in exact]
    bills_due, spent = tape.paid_share is not None, 0.0
    expire = getattr(policy, "expire", None)
    due, lapsing, coming = {}, {}, []  # decisions by the round in which they are heard, or given up
    total, expected = 0.0, 0.0

    def clock(round_: int) -> float:
        return float(round_) if times is None else times[round_ - 1]

    def rounds_left(round_: int) -> int:
        if times is None:
            return horizon - round_ + 1
        pace = (round_ + 1) / (clock(round_) + problem.until / problem.expected_rounds)
        return 1 + round(pace * max(0.0, problem.until - clock(round_)))

    def round_heard(round_: int, delay: float) -> float:
        if times is None:
            return round_ + delay
        return bisect.bisect_left(times, times[round_ - 1] + delay, round_) + 1

    def round_lapsed(round_: int, deadline: float) -> float:
        if times is None:
            return round_ + int(min(deadline, 2.0**31)) + 1
        return bisect.bisect_right(times, times[round_ - 1] + deadline, round_) + 1

    def answer_of(decision: tuple, round_: int) -> Answer:
        decided, context, arm, reward, delay, paid = decision
        answer = Answer()
        answer.round, answer.decided, answer.context, answer.arm = round_, decided, context, arm
        answer.reward, answer.delay, answer.paid = reward, delay, paid
        answer.is_in_time = delay <= deadlines[context]
        answer.x, answer.features = tape.x[decided - 1], None
        if tape.features is not None:
            answer.features = tape.features[decided - 1]
        return answer

    started, wall = time.process_time(), time.perf_counter()
    for round_ in range(1, horizon + 1):
        if round_ % LOOK_EVERY == 0 and time.perf_counter() - wall > limit_s:
            break
        i, context = round_ - 1, tape.context[round_ - 1]
        for decision in due.pop(round_, ()):
            _, of, arm, reward, delay, paid = decision
            is_in_time = delay <= deadlines[of]
            if arm != control and is_in_time:
                total += reward * weights[of]
            if reward != 0.0 or not silent:
                if bills_due and is_in_time:
                    left += exact[of][arm] - Decimal(repr(paid))
                policy.observe(answer_of(decision, round_))
        for decision in lapsing.pop(round_, ()):
            decided, of, arm, _, _, _ = decision
            if bills_due:
                left += exact[of][arm]
            if expire is not None:
                expire(answer_of((decided, of, arm, 0.0, math.inf, 0.0), round_))

        arrival = Arrival()
        if tape.available is None and dearest[context] <= left:
            arrival.available = arms
        else:
            there = None if tape.available is None else tape.available[i]
            row = exact[context]
            arrival.available = tuple(arm for arm in arms if (there is None or there[arm]) and row[arm] <= left)
        arrival.round, arrival.context, arrival.budget_left = round_, context, float(left)
        arrival.rounds_left, arrival.time, arrival.until = rounds_left(round_), clock(round_), problem.until
        arrival.x, arrival.costs = tape.x[i], costs_told[context]
        arrival.features = None if tape.features is None else tape.features[i]
        arm = policy.decide(arrival)
        if arm is not None and arm not in arrival.available:
            raise ValueError(f"round {round_}: chose arm {arm!r}, which is not among {arrival.available}")
        played.choices.append(arm)
        if arm is None:
            if control is None:
                continue
            arm = control
        arm = int(arm)
        left -= exact[context][arm]
        if arm != control:
            played.decisions += 1
        reward, delay = float(tape.reward[i, arm]), float(tape.delay[i, arm])
        expected += float(tape.worth[i, arm])
        if tape.nothing is not None and arm != control:
            total -= tape.nothing[i]
        paid = costs_told[context][arm]
        if bills_due:
            paid *= float(tape.paid_share[i, arm])
            spent += paid
        decision = (round_, context, arm, reward, delay, paid)
        heard = round_heard(round_, delay)
        if heard <= horizon:
            due.setdefault(int(heard), []).append(decision)
        elif counted_later and arm != control and delay <= deadlines[context]:
            coming.append(reward * weights[context])
        if not (delay <= deadlines[context] and (reward != 0.0 or not silent)):
            lapsed = round_lapsed(round_, deadlines[context])
            if lapsed <= horizon:
                lapsing.setdefault(lapsed, []).append(decision)
    else:
        played.rounds = horizon
    played.rounds = played.rounds or round_ - 1
    played.seconds = time.process_time() - started
    played.reward = math.fsum([total, *coming])
    played.expected = expected
    budget = problem.budget
    played.spend = spent if bills_due else min(budget, budget - float(left))
    return played


class Replay:
    """Decides as before: what is left of the time is the player's own."""

    def __init__(self, choices: list) -> None:
        self._choices = choices

    def decide(self, arrival: Arrival):
        return self._choices[arrival.round - 1]

    def observe(self, answer: Answer) -> None:
        pass

    def expire(self, answer: Answer) -> None:
        pass


def load_adapter(folder: Path):
    """The module `adapter.py` of a peer."""
    sys.path[:0] = [str(HERE), str(folder)]
    spec = importlib.util.spec_from_file_location("adapter", folder / "adapter.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("peer", type=Path, help="folder of the peer")
    parser.add_argument("policy", help="its name in POLICIES of adapter.py")
    parser.add_argument("way", help="how the budget is kept: one of WAYS of the policy")
    parser.add_argument("tapes", type=Path, nargs="+", help="folders, one for each run")
    parser.add_argument("--limit", type=float, default=math.inf, help="seconds for all of them")
    parser.add_argument("--speed", action="store_true", help="measure the player's own share, too")
    given = parser.parse_args()
    started, before = time.perf_counter(), time.process_time()
    module = load_adapter(given.peer)
    import_s = time.process_time() - before
    maker = module.POLICIES[given.policy]
    for number, folder in enumerate(given.tapes):
        if number and time.perf_counter() - started > given.limit:
            break
        tape = Tape(folder)
        rest = max(0.0, given.limit - (time.perf_counter() - started))
        seed = int(np.random.SeedSequence((1, tape.problem.run)).generate_state(1)[0])
        played = play(maker(tape.problem, seed, given.way), tape, rest)
        found = {name: value for name, value in vars(played).items() if name != "choices"}
        found.update(run=tape.problem.run, horizon=tape.rounds, import_s=import_s)
        if given.speed:
            found["player_seconds"] = play(Replay(played.choices), tape, math.inf).seconds if played.choices else 0.0
        found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    main()
