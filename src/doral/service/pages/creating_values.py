"""What somebody typed to create a campaign, and what it means: every mistake is found, each at its field.

The checks are those of the library. A field is tried alone, in a problem that is otherwise right, so that one mistake
does not hide another; then all of them together.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import PurePath
from typing import Any, TypeVar

from doral import _check
from doral.engine.options import PolicyOptions
from doral.engine.options import make_policy as policy_by_name
from doral.errors import DoralError, InvalidValue, UnknownName
from doral.live.runtime.clock import end_timestamp, ending
from doral.live.state.definition import make_definition
from doral.problem import Arm, Context, Problem
from doral.problem.context import EVERYONE
from doral.service.pages.forms import MAX_FILE_BYTES, Mistakes, Sent, SentFile
from doral.simulation.scenario import notation as written
from doral.simulation.scenario.notation import FIELD, problem_of, read_bytes

Value = TypeVar("Value")
LEAST_ARM_ROWS, LEAST_CONTEXT_ROWS, MORE_ROWS, MOST_ROWS = 4, 3, 5, 500
_SEEDS = 2**53

# What people call the fields, in the order of the form.
LABELS: Mapping[str, str] = {
    "name": "Name",
    "arms": "Options",
    "contexts": "Groups",
    "budget": "Budget",
    "currency": "Counted in",
    "outcome": "What a reward of 1 is",
    "horizon": "Number of arrivals",
    "until": "Last day",
    "expected_arrivals": "Arrivals that you expect",
    "deadline": "Deadline",
    "policy": "Policy",
    "feedback": "Answers of 0",
    "paid": "Costs are paid",
    "reserve": "Reserve",
    "counted": "Answers that count",
    "return_at_least": "Least return",
    "baseline": "What skipping earns",
    "reward_low": "Lowest reward",
    "reward_high": "Highest reward",
    "clock": "Clock",
    "options": "Options of the policy",
}
# Where an error is told that names something of the library's own.
_ELSEWHERE = {"reward_range": "reward_low", "lowest of reward_range": "reward_low", "name of a campaign": "name"}
_PLAIN = (*(name for name in LABELS if name not in ("arms", "contexts")), "end")


@dataclass(frozen=True, kw_only=True)
class Typed:
    """The form as it was filled in: texts, to be shown again as they are."""

    values: Mapping[str, str] = field(default_factory=dict)
    arms: tuple[tuple[str, str], ...] = ()  # name, cost
    contexts: tuple[tuple[str, str], ...] = ()  # name, share

    @classmethod
    def of(cls, sent: Sent) -> Typed:
        return cls(
            values={name: sent.one(name) for name in _PLAIN if name in sent.texts},
            arms=_rows(sent, "arm_name", "arm_cost"),
            contexts=_rows(sent, "context_name", "context_share"),
        )

    def one(self, name: str) -> str:
        return self.values.get(name, "")

    def pairs(self) -> list[tuple[str, str]]:
        """As fields of a form, in their order."""
        found = list(self.values.items())
        for names, rows in ((("arm_name", "arm_cost"), self.arms), (("context_name", "context_share"), self.contexts)):
            found += [(name, value) for row in rows if any(row) for name, value in zip(names, row, strict=True)]
        return found


def _rows(sent: Sent, *names: str) -> tuple[tuple[str, str], ...]:
    first, second = (sent.many(name)[:MOST_ROWS] for name in names)
    long = max(len(first), len(second))
    padded = [one + [""] * (long - len(one)) for one in (first, second)]
    return tuple(zip(*padded, strict=True))


@dataclass(frozen=True, kw_only=True)
class Asked:
    """A campaign that can be created."""

    name: str
    problem: Problem
    until: str | None  # the date of its end, where that is one
    policy: str
    options: Mapping[str, Any]
    clock: str

    @property
    def policy_options(self) -> PolicyOptions:
        return policy_by_name(self.policy, **self.options)

    def to_json(self) -> str:
        """To travel with the page that shows it, until somebody says yes."""
        return json.dumps(
            {
                "name": self.name,
                "problem": self.problem.to_dict(),
                "until": self.until,
                "policy": self.policy,
                "options": dict(self.options),
                "clock": self.clock,
            },
            ensure_ascii=False,
        )

    @classmethod
    def from_json(cls, text: str) -> Asked:
        """What came back, checked as if it had never been seen."""
        remedy = "is not what this page has sent: begin again"
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            raise InvalidValue("campaign", text, remedy) from None
        if not isinstance(data, dict) or set(data) != {"name", "problem", "until", "policy", "options", "clock"}:
            raise InvalidValue("campaign", text, remedy)
        if not (isinstance(data["policy"], str) and isinstance(data["options"], dict)):
            raise InvalidValue("campaign", text, remedy)
        if not (data["until"] is None or isinstance(data["until"], str)):
            raise InvalidValue("campaign", text, remedy)
        return cls(**{**data, "problem": Problem.from_dict(data["problem"])})

    def check(self) -> None:
        """All that creating it would refuse, but for a name that is taken."""
        now = time.time()
        make_definition(
            name=_check.name("name of a campaign", self.name),
            problem=self.problem if self.until is None else ending(self.problem, self.until, now),
            policy=self.policy_options,
            seed=0,
            clock=self.clock,
            created_at=now,
        )


def asked_of(typed: Typed, *, taken: set[str]) -> tuple[Asked | None, Mistakes]:
    """The campaign that was typed, or None and what is wrong with it. `taken`: names that campaigns have already."""
    found = _Reading(typed)
    name = found.check("name", lambda: _free_name(typed.one("name"), taken))
    arms, contexts = found.arms(), found.contexts()
    clock = found.check("clock", lambda: _clock(typed.one("clock") or "seconds")) or "seconds"
    given = found.alone(clock)
    policy = found.policy()
    if found.mistakes or name is None or policy is None:
        return None, found.mistakes
    until = typed.one("until") if typed.one("end") == "date" else None
    try:
        problem = Problem(arms=arms, contexts=contexts, **given)
        asked = Asked(name=name, problem=problem, until=until, policy=policy[0], options=policy[1], clock=clock)
        asked.check()
    except DoralError as error:
        found.place(error)
        return None, found.mistakes
    return asked, found.mistakes


class _Reading:
    """One form, field by field."""

    def __init__(self, typed: Typed) -> None:
        self.typed, self.mistakes = typed, Mistakes()

    def check(self, id_: str, work: Callable[[], Value], *, label: str = "") -> Value | None:
        try:
            return work()
        except DoralError as error:
            self.mistakes.take(id_, error, label=label or LABELS.get(id_, id_))
            return None

    def place(self, error: DoralError) -> None:
        """A mistake of the whole, at the field that it speaks of."""
        kind = error.field if isinstance(error, InvalidValue) else error.kind if isinstance(error, UnknownName) else ""
        id_ = _ELSEWHERE.get(kind, kind)
        if id_ in LABELS:
            self.mistakes.take(id_, error, label=LABELS[id_])
        elif "context" in kind or "share" in kind:
            self.mistakes.add("contexts", f"{error}.", label=LABELS["contexts"])
        elif "arm" in kind:
            self.mistakes.add("arms", f"{error}.", label=LABELS["arms"])
        else:
            self.mistakes.add("policy", f"{error}.", label=LABELS["policy"])

    def arms(self) -> list[Arm]:
        made: list[Arm] = []
        before: list[str] = []
        for row, (name, cost) in enumerate(self.typed.arms):
            if not name and not cost:
                continue
            named = self.check(f"arm-name-{row}", partial(_arm_name, name, before), label=f"Option {row + 1}")
            before += [] if named is None else [named]
            arm = self.check(f"arm-cost-{row}", partial(_arm, named or "it", cost), label=f"Cost of option {row + 1}")
            if named is not None and arm is not None:
                made.append(arm)
        if not any(name or cost for name, cost in self.typed.arms):
            self.mistakes.add("arm-name-0", "Name at least one: what can the budget be spent on?", label="Options")
        return made

    def contexts(self) -> list[Context]:
        made: list[Context] = []
        before: list[str] = []
        for row, (name, share) in enumerate(self.typed.contexts):
            if not name and not share:
                continue
            id_, label = f"context-share-{row}", f"Share of group {row + 1}"
            named = self.check(f"context-name-{row}", partial(_context_name, name, before), label=f"Group {row + 1}")
            before += [] if named is None else [named]
            context = self.check(id_, partial(_context, named or "it", share), label=label)
            if named is not None and context is not None:
                made.append(context)
        try:
            _try("contexts", made or [EVERYONE])  # shares that do not add up
        except DoralError as error:
            self.place(error)
        return made or [Context(EVERYONE)]

    def alone(self, clock: str) -> dict[str, Any]:
        """Everything else that a problem is given, each checked in a problem that is otherwise right."""
        typed = self.typed
        given: dict[str, Any] = {"budget": self._tried("budget")}
        if typed.one("end") == "date":
            self.check("until", lambda: _later("until", typed.one("until")))
            given["until"] = 1.0  # the date says how long it is
            if typed.one("expected_arrivals"):
                given["expected_arrivals"] = self._tried("expected_arrivals")
        else:
            given["horizon"] = self._tried("horizon")
        if typed.one("deadline"):
            given["deadline"] = self.check(
                "deadline", lambda: _try("deadline", _deadline(typed.one("deadline"), clock))
            )
        for name in ("feedback", "counted", "paid"):  # the last is told together with deadline and reserve
            if typed.one(name):
                given[name] = typed.one(name)
        for name in ("return_at_least", "reserve"):
            if typed.one(name):
                given[name] = self.check(name, partial(_number, name, typed.one(name)))
        for name in ("currency", "outcome"):
            if typed.one(name):
                given[name] = self.check(name, partial(_try, name, typed.one(name)))
        if typed.one("baseline"):
            given["baseline"] = _number_or_word(typed.one("baseline"))
        if typed.one("reward_low") or typed.one("reward_high"):
            ends = ("reward_low", "reward_high")
            given["reward_range"] = [self.check(one, partial(_number, one, typed.one(one))) for one in ends]
        return given

    def _tried(self, name: str) -> float | None:
        """A number that a problem takes."""
        found: float | None = self.check(name, lambda: _try(name, _number(name, self.typed.one(name))))
        return found

    def policy(self) -> tuple[str, dict[str, Any]] | None:
        name = self.typed.one("policy") or "doral-otf"
        if self.check("policy", lambda: policy_by_name(name)) is None:
            return None
        options = self.check("options", lambda: _options(self.typed.one("options")))
        if options is None or self.check("options", lambda: policy_by_name(name, **options)) is None:
            return None
        return name, options


def _try(name: str, value: Any) -> Any:
    """The value, if a problem takes it."""
    end = {"until": 1.0} if name == "expected_arrivals" else {"horizon": 1}
    Problem(**{"arms": ["a"], "contexts": ["b"], "budget": 1.0, **end, name: value})
    return value


def _arm_name(name: str, before: list[str]) -> str:
    _check.no_duplicates("name of an arm", [*before, Arm(name).name])
    return name


def _arm(name: str, cost: str) -> Arm:
    return Arm(name, cost=_number("cost", cost) if cost else 1.0)


def _context_name(name: str, before: list[str]) -> str:
    _check.no_duplicates("name of a context", [*before, Context(name).name])
    return name


def _context(name: str, share: str) -> Context:
    return Context(name, _share(share))


def _free_name(name: str, taken: set[str]) -> str:
    name = _check.name("name of a campaign", name)
    if name in taken:
        raise InvalidValue("name", name, "is the name of a campaign that is there already; choose another")
    return name


def _clock(word: str) -> str:
    if word not in ("seconds", "rounds"):
        raise InvalidValue("clock", word, "must be seconds or rounds")
    return word


def _number(name: str, text: str) -> float:
    if not text:
        raise InvalidValue(name, text, "must not be empty")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if "_" in text or not math.isfinite(value):
        raise InvalidValue(name, text, "must be a number, such as 1000 or 2.5")
    return value


def _number_or_word(text: str) -> float | str:
    try:
        return _number("baseline", text)
    except InvalidValue:
        return text


def _share(text: str) -> float | None:
    """A number, or a percentage; None where it is to be learned."""
    if not text:
        return None
    if text.endswith("%"):
        return _number("share", text[:-1].strip()) / 100.0
    return _number("share", text)


def _deadline(text: str, clock: str) -> float:
    if clock == "rounds":
        return _number("deadline", text)
    if text.replace(".", "", 1).isdecimal():
        raise InvalidValue("deadline", text, f"must say its unit: {text}d for days, or h, min, s")
    found: float = written.duration("deadline", text, clock="seconds")
    return found


def _later(name: str, text: str) -> str:
    if not text:
        raise InvalidValue(name, "", "give the day on which the campaign ends, such as 2027-03-31")
    if end_timestamp(name, text) <= time.time():
        raise InvalidValue(name, text, "must be in the future")
    return text


def _options(text: str) -> dict[str, Any]:
    """NAME=VALUE, one on each line; values of JSON, or words."""
    found: dict[str, Any] = {}
    for line in text.splitlines():
        if not line.strip():
            continue
        name, is_there, value = (part.strip() for part in line.partition("="))
        if not is_there or not name:
            raise InvalidValue("options", line, "must be written NAME=VALUE, one on each line")
        if name in found:
            raise InvalidValue("options", line, "is given twice")
        try:
            found[name] = json.loads(value)
        except ValueError:
            found[name] = value
    return found


def seed_of(key: str) -> int:
    """The seed of the campaign that a form with this key creates: sent twice, it is known again by it."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:8]) % _SEEDS


# --- from a file: a problem as `doral init` writes it, or a plan ------------------------------------------------------

USUAL_POLICY = "doral-otf"
_LOGS = (".csv", ".csv.gz", ".parquet", ".xlsx")  # what people have, and may take for what is meant


def asked_of_file(file: SentFile | None, *, name: str, policy: str, clock: str) -> Asked:
    """What the file asks for. Where nothing is chosen (""), a plan's own policy and clock are taken.

    Args:
        file: What was sent.
        name: Of the campaign; "": as the file calls it.
        policy: Name of a preset; "": as the file advises.
        clock: "seconds", "rounds", or "": as the file says.
    """
    if file is None:
        raise InvalidValue(FIELD, "", "choose a file: what `doral init` or `doral plan` has written")
    if file.is_too_large:
        raise InvalidValue(FIELD, file.name, f"is larger than {MAX_FILE_BYTES // 2**20} MiB; is it the right file?")
    if file.name.lower().endswith(_LOGS):
        remedy = "looks like a log: `doral plan` reads it, and the plan.json that it writes can be given here"
        raise InvalidValue(FIELD, file.name, remedy)
    data = read_bytes(FIELD, file.name, file.content)
    advised = USUAL_POLICY
    options: dict[str, Any] = {}
    own_clock = "seconds"
    if is_plan(data):
        advised, options = _advice(data["recommendation"])
        own_clock = _clock_of(data.get("clock"))
        data = data["problem"]
    elif isinstance(data, Mapping) and "reasons" in data and "policy" in data:
        remedy = "says which policy to run, and no problem: choose plan.json of the same folder, which has both"
        raise InvalidValue(FIELD, file.name, remedy)
    chosen_clock = clock or own_clock
    found = problem_of(data, source=file.name, clock=chosen_clock)
    return Asked(
        name=name or _called(data, file.name),
        problem=found.problem,
        until=found.until,
        policy=policy or advised,
        options=options if policy in ("", advised) else {},
        clock=chosen_clock,
    )


def is_plan(data: object) -> bool:
    """Whether it is the `plan.json` of a plan, which holds a problem, and which policy to run on it."""
    return isinstance(data, Mapping) and isinstance(data.get("recommendation"), Mapping) and "problem" in data


def _advice(given: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    options = given.get("options") or {}
    try:
        return str(given.get("preset") or given.get("policy") or USUAL_POLICY), dict(options)
    except (TypeError, ValueError):
        raise InvalidValue(FIELD, given, "has options of its policy that cannot be read") from None


def _clock_of(given: object) -> str:
    unit = given.get("unit") if isinstance(given, Mapping) else None
    return "seconds" if unit in (None, "seconds") else "rounds"


def _called(data: object, file_name: str) -> str:
    own = data.get("name") if isinstance(data, Mapping) else None
    return own if isinstance(own, str) and own.strip() else PurePath(file_name.replace("\\", "/")).stem
