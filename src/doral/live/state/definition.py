"""What a campaign is: problem, policy, seed and clock. Written once, into its first event."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal, get_args

import numpy as np

from doral import _check
from doral._version import VERSION
from doral.compiled.key import modules_digest
from doral.compiled.program import processor
from doral.engine.options import PolicyOptions, read_stored
from doral.engine.options import make_policy as policy_by_name
from doral.engine.setup import MAX_SEED, check_fit
from doral.errors import InvalidValue, UnknownName
from doral.live.errors import NewerDatabase
from doral.problem import Problem

ClockKind = Literal["seconds", "rounds"]
DEFINITION_FORMAT = 1
OLD_ENGINE = '{"doral": "0.1"}'  # did not say its name
DAY_S = 86_400.0
_EPOCH_WEEKDAY = 3  # 1970 began on a Thursday


@cache
def decisions_digest() -> str:
    """Return a digest of the code that decides: kernels, and the Python that sets them up."""
    return modules_digest("doral.engine.engine")


@cache
def engine_name() -> str:
    """Version, sources that decide, and processor: two that are named alike decide alike, to the bit."""
    return json.dumps(
        {"doral": VERSION, "sources": decisions_digest()[:16], "processor": processor(), "numpy": np.__version__}
    )


def time_of_week(stamp: float) -> float:
    """Seconds since the week began, on a Monday at midnight, in UTC."""
    return (stamp + _EPOCH_WEEKDAY * DAY_S) % (7 * DAY_S)


@dataclass(frozen=True, kw_only=True)
class Definition:
    """Never changes while the campaign runs; what does change is an event."""

    name: str | None  # of the campaign; None: made by version 0.1, which did not say it here
    problem: Problem
    policy: PolicyOptions
    seed: int
    clock: ClockKind
    engine: str  # that made it, see `engine_name`
    created_at: float  # seconds since 1970: where the clock starts, which may be before it was made
    own: str | None = None  # the name of a policy in Python that decides; `policy` then only gives estimates
    gone: tuple[str, ...] = ()  # options that it was created with, and that this version does not have

    @property
    def is_in_seconds(self) -> bool:
        return self.clock == "seconds"

    @property
    def epoch(self) -> float:
        """Where the campaign's clock starts, on the axis of the timestamps that people give."""
        return self.created_at if self.is_in_seconds else 0.0

    def to_json(self) -> str:
        return json.dumps(
            {
                "format": DEFINITION_FORMAT,
                "name": self.name,
                "problem": self.problem.to_dict(),
                "policy": self.policy.to_dict(),
                "seed": self.seed,
                "clock": self.clock,
                "created_at": self.created_at,
                "engine": self.engine,
                **({} if self.own is None else {"own": self.own}),
            },
            allow_nan=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Definition:
        stored: dict[str, Any] = json.loads(text)
        if stored.get("format") != DEFINITION_FORMAT:
            raise NewerDatabase(
                f"campaign format {stored.get('format')!r}: this doral reads {DEFINITION_FORMAT}; install a newer one"
            )
        try:
            policy, lost = read_stored(stored["policy"])
        except UnknownName as error:
            raise NewerDatabase(f"the campaign's policy was written by another doral: {error}") from None
        problem = Problem.from_dict(stored["problem"])
        if policy.products and not problem.person:  # accepted once, without effect
            policy = replace(policy, products="")
        return cls(
            name=stored.get("name"),
            problem=problem,
            policy=policy,
            seed=stored["seed"],
            clock=stored["clock"],
            created_at=stored["created_at"],
            engine=stored.get("engine", OLD_ENGINE),
            own=stored.get("own"),
            gone=lost,
        )


def make_definition(
    *,
    name: str,
    problem: object,
    policy: str | PolicyOptions,
    seed: int,
    clock: str,
    created_at: float,
    own: str | None = None,
) -> Definition:
    """Check everything once, before anything is written."""
    if not isinstance(problem, Problem):
        raise InvalidValue("problem", problem, "must be a doral.Problem")
    options = policy_by_name(policy) if isinstance(policy, str) else policy
    if not isinstance(options, PolicyOptions):
        raise InvalidValue(
            "policy",
            policy,
            "must be a name or doral.policy(...); one in Python is named in doral.open(url, code=...), and here 'own'",
        )
    if not _check.is_among(clock, get_args(ClockKind)):
        raise InvalidValue("clock", clock, "must be seconds or rounds")
    if options.return_probability == "oracle":
        remedy = "needs the true delays, which only a simulation has; choose estimated or one"
        raise InvalidValue("return_probability", "oracle", remedy)
    if options.censoring == "instant":
        remedy = "needs delays before they have passed, which only a simulation has; choose returned or min_age"
        raise InvalidValue("censoring", "instant", remedy)
    ages_are_known = math.isfinite(float(problem.deadlines.max())) or isinstance(options.cutoff, float)
    if clock == "seconds" and not ages_are_known:
        remedy = "a clock in seconds needs one, in seconds (or a policy with a cutoff); or choose clock='rounds'"
        raise InvalidValue("deadline", None, remedy)
    if clock == "rounds" and problem.until is not None:
        remedy = "a clock that counts rounds shows no dates: choose clock='seconds', or give a horizon"
        raise InvalidValue("until", problem.until, remedy)
    seed = _check.whole_number("seed", seed, at_least=0, at_most=MAX_SEED)
    check_fit(policy=options, problem=problem, seed=seed)
    return Definition(
        name=name,
        problem=problem,
        policy=options,
        seed=seed,
        clock=clock,  # type: ignore[arg-type]
        created_at=created_at,
        engine=engine_name(),
        own=own,
    )
