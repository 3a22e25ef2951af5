"""`doral.plan`: from a log to a decision."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from typing import Unpack

from doral import _check
from doral._input_types import Duration
from doral._progress import Progress
from doral.engine.options import PolicyOptions
from doral.engine.setup import MAX_SEED
from doral.evaluation.evaluate import value_policies
from doral.evaluation.evaluation import Evaluation
from doral.evaluation.rows import check_deadline
from doral.inference.intervals import DRAWS
from doral.inference.log_problem import Asked, asked_of, by_arrivals, spent
from doral.inference.truths import Truths, truths_of
from doral.logs.log import Log
from doral.logs.read import AnyLog, ReadOptions, as_log
from doral.planning.curves import return_curves
from doral.planning.earnings import Earnings, earn, earnings_of
from doral.planning.facts import number, plural
from doral.planning.plan import Plan
from doral.planning.questions import findings
from doral.planning.recommendation import can_run_live, headline, recommend
from doral.planning.responsiveness import responsiveness
from doral.planning.spending import More, Spending, spending
from doral.planning.tails import delay_tails
from doral.planning.values import (
    CellValue,
    NothingDone,
    apart,
    arm_values,
    cell_values,
    chances_of,
    draws_of,
    nothing_done,
    prices,
)
from doral.planning.waiting import Waiting, waiting
from doral.simulation.api import AnyPolicy, MadePolicy, checked_jobs, made_policies, policy_name
from doral.simulation.scenario.from_log import deadline_on_clock, world_of

POLICIES: tuple[str, ...] = (
    "doral-otf",
    "doral",
    "d-alp",
    "d-linucb",
    "d-lints",
    "random",
    "a/b",
    "explore-then-lp",
    "ts-lp",
    "oracle",
)
TRUTHS, FEWEST, MOST = 40, 2, 10_000
# Rounds that each policy plays over all draws, unless the caller says how many draws; and the fewest draws then.
PLAYED_ROUNDS, FEWEST_USUAL = 4_000_000, 8
_NOTHING = 1e-6  # of what is earned
OnProgress = Callable[[float, str], None]


def plan(
    log: AnyLog,
    *,
    budget: float | None = None,
    horizon: float | None = None,
    deadline: Duration | None = None,
    policies: AnyPolicy | Iterable[AnyPolicy] | None = None,
    truths: int | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    on_progress: OnProgress | None = None,
    progress: bool | None = None,
    command: str = "",
    **columns: Unpack[ReadOptions],
) -> Plan:
    """What a log says to somebody who has to decide: who answers, how long to wait, what a budget buys, what to run.

    Args:
        log: One that `doral.read_log` has read, or anything that it reads.
        budget: What can be spent in all. None: what was spent per arrival.
        horizon: How many will arrive. None: as many as in the log.
        deadline: How old an answer may be to count: "14d", or a number in the unit in which the log's times are told.
            None: as long as answers take.
        policies: Those that are compared: names, `doral.policy(...)`, `doral.rival(...)`, or classes in Python. None:
            the usual ten.
        truths: Posterior draws that each policy plays; those in Python play fewer, where arrivals are many. What needs
            no playing uses at least 400 draws. None: 40, and fewer with more than 100,000 arrivals.
        seed: Of all draws: the same seed is the same plan. Default: 0.
        n_jobs: Parallel workers, -1 for all cores; results do not depend on it. Default: 1.
        on_progress: Called with the share that is done, from 0 to 1, and what is being done.
        progress: Whether one line on standard error says how far it is. None: where somebody is looking, and nobody
            listens with `on_progress`.
        command: What to type for the same plan, for the page; the command line fills it in.
        columns: Options of `doral.read_log`, where `log` is still to be read.
    """
    is_shown = progress if progress is not None or on_progress is None else False
    with Progress("planning", is_shown=is_shown) as shown:
        told = on_progress or (lambda share, stage: shown.stage(stage, share))
        return _plan(log, columns, budget, horizon, deadline, policies, truths, seed, n_jobs, told, command)


def _plan(
    log: AnyLog,
    columns: ReadOptions,
    budget: float | None,
    horizon: float | None,
    deadline: object,
    policies: AnyPolicy | Iterable[AnyPolicy] | None,
    truths: int | None,
    seed: int,
    n_jobs: int,
    told: OnProgress,
    command: str,
) -> Plan:
    started = time.monotonic()
    told(0.0, "reading")
    read = as_log(log, columns)
    if truths is not None:
        truths = _check.whole_number("truths", truths, at_least=FEWEST, at_most=MOST)
    seed = _check.whole_number("seed", seed, at_least=0, at_most=MAX_SEED)
    n_jobs = checked_jobs(n_jobs)
    given = None if deadline is None else read.clock.duration("deadline", deadline)
    limit = deadline_on_clock(read, deadline)
    if read.is_answered.any():
        check_deadline(read, limit)
    asked = asked_of(read, deadline=limit, budget=budget, horizon=horizon)
    n_truths = truths or min(TRUTHS, max(FEWEST_USUAL, int(PLAYED_ROUNDS / asked.arrivals)))
    chosen = made_policies(POLICIES if policies is None else policies)
    problem = by_arrivals(asked)
    has_seconds = read.clock.unit == "seconds"
    live = {
        policy_name(one): one
        for one in chosen
        if isinstance(one, PolicyOptions) and can_run_live(one, problem, has_seconds=has_seconds)
    }
    told(0.05, "how answers come")
    curves, wait = return_curves(read, seed=seed), waiting(read, deadline=given, seed=seed)
    found = findings(read, deadline=given)
    told(0.15, "what the log leaves possible")
    is_answered = bool(read.is_answered.any())
    earnings, spend, draws, evaluation = None, None, None, None
    cells: tuple[CellValue, ...] = ()
    if is_answered:
        drawn = truths_of(read, deadline=limit, n=max(DRAWS, n_truths), seed=seed)
        draws, cells = draws_of(read, drawn, asked.problem), cell_values(read, drawn)
        spend = spending(
            draws.values,
            draws.costs,
            draws.shares,
            asked.arrivals,
            asked.problem.budget,
            unit=_unit(read, drawn),
            currency=read.currency,
        )
        told(0.2, "policies play")
        earnings = _earnings(read, asked, drawn, chosen, live, truths=n_truths, seed=seed, n_jobs=n_jobs, told=told)
        told(0.9, "what the log says by itself")
        evaluation = _evaluation(read, limit, asked, seed)
    told(0.95, "writing")
    limits = _limits(read, asked, earnings)
    advice = recommend(read, earnings, live, limits)
    arms = () if draws is None else arm_values(read.arms, draws)
    nothing = nothing_done(read)
    rest = (*_beyond(nothing[0]), *((apart(arms),) if arms else ()))
    more = () if spend is None else _more(spend, asked)
    made = Plan(
        answer=_answer(read, asked, earnings, wait, more, rest),
        log=read,
        problem=problem,
        deadline=limit,
        recommendation=advice,
        earnings=earnings,
        arms=arms,
        cells=cells,
        curves=curves,
        findings=found,
        tails=delay_tails(read),
        responsiveness=responsiveness(read, deadline=given),
        waiting=wait,
        prices=prices(read),
        nothing=nothing,
        spending=spend,
        more=more,
        evaluation=evaluation,
        seed=seed,
        took_s=time.monotonic() - started,
        command=command,
    )
    told(1.0, "done")
    return made


def _earnings(
    log: Log,
    asked: Asked,
    drawn: Truths,
    policies: list[MadePolicy],
    live: Mapping[str, PolicyOptions],
    *,
    truths: int,
    seed: int,
    n_jobs: int,
    told: OnProgress,
) -> Earnings:
    world = world_of(log, asked, drawn)
    today = spent(log) / len(log)
    rate = asked.problem.budget / asked.arrivals / today if today > 0.0 else 1.0
    done = 0

    def on_truth() -> None:
        nonlocal done
        done += 1
        told(0.2 + 0.7 * done / truths, f"posterior draw {done} of {truths}")

    chances = chances_of(log, rate=rate)
    found, refused = earn(world, policies, chances, truths=truths, seed=seed, n_jobs=n_jobs, on_truth=on_truth)
    return earnings_of(
        found,
        arrivals=asked.arrivals,
        budget=asked.problem.budget,
        unit=_unit(log, drawn),
        left_out=tuple(f"{one.policy}: {one.why}" for one in refused),
        live=frozenset(live),
        is_never_negative=not log.skips_are_answered and bool((drawn.cells.worth >= 0.0).all()),
    )


def _unit(log: Log, drawn: Truths) -> str:
    """What totals count, in words."""
    return plural(log.outcome) if log.outcome else "positives" if drawn.cells.step == 1.0 else "reward"


def _evaluation(log: Log, limit: float, asked: Asked, seed: int) -> Evaluation:
    """Of simple rules: everybody gets one arm, all alike, the best for each, the best for the money."""
    rules = ["uniform", "best", "lp", *(f"always:{arm}" for arm in log.arms[:3])]
    until = log.clock.written(limit)
    return value_policies(log, rules, deadline=until, budget=asked.problem.budget / asked.arrivals, seed=seed)


def _more(spend: Spending, asked: Asked) -> tuple[More, ...]:
    """A tenth more, a tenth less, and half as much again."""
    budget = asked.problem.budget
    return tuple(spend.more(_round(share * budget)) for share in (0.1, 0.5, -0.1))


def _round(amount: float) -> float:
    """To two digits: what somebody would ask for."""
    return float(f"{amount:.2g}")


def _answer(
    log: Log,
    asked: Asked,
    earnings: Earnings | None,
    wait: Waiting,
    more: tuple[More, ...],
    rest: tuple[str, ...],
) -> tuple[str, ...]:
    if earnings is None:
        return ("Nothing was answered yet: the log cannot tell what anything brings.", wait.sentence)
    said = [*headline(log, asked, earnings), *rest, wait.sentence]
    if more:
        is_enough = more[0].gain <= _NOTHING * earnings.policies[0].worth.value
        said.append(
            "More money would bring nothing: every useful use is already paid for." if is_enough else more[0].sentence
        )
    return tuple(said)


def _beyond(nothing: NothingDone) -> tuple[str, ...]:
    """What is earned is told beyond what comes anyway: said where something does."""
    if nothing.value is None or nothing.value == 0.0:
        return ()
    return (f"All this is beyond what comes anyway: {number(nothing.value)} per arrival where nothing is done.",)


def _limits(log: Log, asked: Asked, earnings: Earnings | None) -> tuple[str, ...]:
    """What was assumed, and what the log cannot tell."""
    said = [
        "Who got what in the log may have been chosen by things that it does not hold: then arms look better or worse "
        "than they are. Only chance, or what stands in the columns, is accounted for.",
        "What comes is taken to be as it was: the same people, arms and delays.",
    ]
    if log.told == "none":
        said.append("The log does not say with which probability decisions were made: they were estimated from counts.")
    if not log.skips_are_answered:
        said.append("What doing nothing brings is not in the log: it is taken to bring nothing.")
    if not log.has_delays:
        said.append("The log does not say when answers came: they are taken to come at once.")
    if not asked.horizon_is_given:
        said.append(f"As many are taken to come as in the log: {number(asked.arrivals)}.")
    if earnings is not None:
        said.extend(f"Left out: {one}" for one in earnings.left_out)
        few = [one for one in earnings.policies if one.truths < max(each.truths for each in earnings.policies)]
        if few:
            names = ", ".join(one.policy for one in few)
            said.append(f"{names} played {few[0].truths} posterior draws only: they are written in Python, and slow.")
    return tuple(said)
