"""Plays an adapter on tapes: arrivals one by one, answers handed over when they return, the budget kept exactly.

It needs NumPy and nothing else, and any Python from 3.8 on: it runs in the environment of each peer, where DORAL is not
installed. What it does is what `doral.simulate` does with a policy written in Python, to the bit;
`tests/simulation/test_peers.py` holds it to that.
"""

from __future__ import annotations

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
LOOK_EVERY = 8  # rounds between two looks at the clock
SOON = 1 / 3
FEWEST_RUNS = 3  # of which an interval is made, as `doral.simulation.results.differences` has it


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


def play(policy, tape: Tape, limit_s: float = math.inf, rounds: int | None = None, soon: float = SOON) -> Played:
    """The whole tape, or as many rounds as are asked for, or as the limit (seconds of processor time) allows.

    Who has played less than half of the share `soon` of the rounds in that share of the time is given up then: half the
    pace that is needed is not made up for later.
    """
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

    started, last = time.process_time(), horizon if rounds is None else rounds
    for round_ in range(1, last + 1):
        if round_ % LOOK_EVERY == 0:
            taken = (time.process_time() - started) / limit_s
            if taken > 1.0 or (taken > soon and round_ < 0.5 * soon * last):
                break
        played.rounds = round_
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


def peak_mb() -> float:
    """Resident memory of this process, at most. `ru_maxrss` would be that of whoever started it, if that is larger."""
    path = Path("/proc/self/status")
    for line in path.read_text().splitlines() if path.exists() else ():
        if line.startswith("VmHWM:"):
            return float(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def load_adapter(folder: Path):
    """The module `adapter.py` of a peer."""
    sys.path[:0] = [str(HERE), str(folder)]
    spec = importlib.util.spec_from_file_location("adapter", folder / "adapter.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Job:
    """A policy of a peer on the runs of a scenario."""

    def __init__(self, told: dict) -> None:
        self.policy, self.limit, self.speed = told["policy"], told["limit_s"], told.get("speed", False)
        self.tapes = [Path(folder) for folder in told["tapes"]]
        # Where ways of keeping the budget are tried, and nothing is counted; without it the first way is played.
        self.trial = Path(told["trial"]) if "trial" in told else None

    def played(self, maker) -> dict:
        """All runs in one way of keeping the budget: the one that was best on the tape for trials.

        Who could not finish what is needed at this pace is given up at once, with the run that was not finished.
        """
        left, tried, runs = self.limit, {}, []
        ways = maker.WAYS if self.trial is not None and len(maker.WAYS) > 1 else ()
        fewest = min(FEWEST_RUNS, len(self.tapes))
        for number, way in enumerate(ways):
            found = self._run(maker, way, self.trial, left / (len(ways) - number + fewest))
            left -= found["seconds"]
            if found["rounds"] < found["horizon"]:
                return {"way": way, "tried": tried, "runs": [found]}
            tried[way] = found["expected"]
        way = max(tried, key=tried.__getitem__) if tried else maker.WAYS[0]
        for folder in self.tapes:
            runs.append(self._run(maker, way, folder, left / max(1, fewest - len(runs))))
            left -= runs[-1]["seconds"]
            if runs[-1]["rounds"] < runs[-1]["horizon"] or left <= 0.0:
                break
        return {"way": way, "tried": tried, "runs": runs}

    def made(self, maker, tape: Tape, seed: int, way: str):
        return maker(tape.problem, seed, way)

    def _run(self, maker, way: str, folder: Path, limit: float) -> dict:
        tape = Tape(folder)
        seed = int(np.random.SeedSequence((1, tape.problem.run)).generate_state(1)[0])
        started = time.process_time()
        policy = self.made(maker, tape, seed, way)
        making = time.process_time() - started
        played = play(policy, tape, limit, soon=1.0 if self.speed else SOON)  # a pace needs no whole tape
        found = {name: value for name, value in vars(played).items() if name != "choices"}
        found.update(run=tape.problem.run, horizon=tape.rounds, way=way)
        if self.speed:
            rest = play(Replay(played.choices), tape, rounds=played.rounds)
            found["own_seconds"] = played.seconds - rest.seconds  # without the player's
        found["seconds"] += making
        return found


def main() -> None:
    """Arguments: the folder of a peer, a file with jobs, a file to which a line is added for each."""
    folder, jobs, out = (Path(argument) for argument in sys.argv[1:4])
    before, wall = time.process_time(), time.perf_counter()
    module = load_adapter(folder)
    imported = {"import_s": time.process_time() - before, "import_wall_s": time.perf_counter() - wall}
    for told in json.loads(jobs.read_text()):
        with out.open("a") as file:  # before it is tried: a process may die in it
            file.write(json.dumps({"begun": told["key"]}) + "\n")
        try:
            found = Job(told).played(module.POLICIES[told["policy"]])
        except Exception as error:  # noqa: BLE001  # whatever a library raises is a row of the table
            name, words = type(error).__name__, str(error)[:300]
            found = (
                {"left_out": f"does not apply: {words}"} if name == "DoesNotApply" else {"error": f"{name}: {words}"}
            )
        peak = peak_mb()
        with out.open("a") as file:
            file.write(json.dumps({"key": told["key"], "peak_mb": peak, **imported, **found}) + "\n")


if __name__ == "__main__":
    main()
