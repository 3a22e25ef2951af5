"""Which column is what: as the caller names them, and guessed where a name leaves no doubt."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from doral.errors import InvalidValue, UnknownName, shown

# Names in lower case with single underscores, in tiers: one of the first goes before all of the next.
KNOWN: dict[str, tuple[tuple[str, ...], ...]] = {
    "arm": (
        ("arm", "arm_name", "treatment", "action", "variant", "treatment_arm", "chosen_arm"),
        ("intervention", "assignment", "assigned_arm", "offer", "condition", "experiment_group", "test_group", "w"),
        ("group",),
    ),
    "reward": (
        ("reward", "outcome"),
        (
            "response",
            "converted",
            "conversion",
            "result",
            "success",
            "y",
            "clicked",
            "click",
            "test_result",
            "positive",
        ),
    ),
    "answered": (
        ("answered_at", "answer_at", "answer_time", "answered_time", "returned_at", "responded_at"),
        ("result_at", "result_time", "result_date", "resolved_at", "outcome_at", "outcome_time", "outcome_date"),
        ("answered", "response_at", "converted_at", "conversion_time", "reported_at", "reported_date", "feedback_at"),
    ),
    "delay": (("delay", "answer_delay"), ("latency", "turnaround", "turnaround_time", "tat", "time_to_answer", "lag")),
    "time": (
        ("decided_at", "decision_time", "time", "timestamp", "arrived_at", "arrival_time", "assigned_at", "datetime"),
        ("date", "created_at", "created", "ts", "sent_at", "event_time", "day", "collected_date", "collected_at"),
        ("round", "step", "t"),
    ),
    "observed_until": (("observed_until", "watched_until", "censored_at", "followed_until", "observed_to"),),
    "probability": (("probability", "propensity", "pscore", "propensity_score", "action_prob"), ("prob", "p", "ps")),
    "cost": (("cost", "list_price", "unit_cost"), ("price",)),
    # Not "spend": in logs of shops that is what customers spent.
    "paid": (("paid", "actual_cost", "amount_paid"), ("charged",)),
    "key": (
        ("id", "decision_id", "request_id", "row_id", "event_id", "impression_id", "order_id"),
        ("key", "uuid"),
        ("user_id", "userid", "customer_id", "patient_id", "subject_id", "person_id", "client_id", "visitor_id"),
    ),
}
_CONTEXTS = (("context", "contexts"), ("stratum", "strata", "segment", "cohort", "group", "customer_segment"))
_OF_PEOPLE = KNOWN["key"][-1]  # who comes twice is no duplicate
OPTIONAL = ("observed_until", "key")  # doubts about these are no reason to stop
_UNITS = {
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), "seconds"),
    **dict.fromkeys(("min", "mins", "minute", "minutes"), "minutes"),
    **dict.fromkeys(("h", "hr", "hrs", "hour", "hours"), "hours"),
    **dict.fromkeys(("d", "day", "days"), "days"),
    **dict.fromkeys(("w", "week", "weeks"), "weeks"),
    **dict.fromkeys(("ms", "milliseconds", "millisecond"), "milliseconds"),
    **dict.fromkeys(("round", "rounds"), "rounds"),
}
UNIT_NAMES = ("milliseconds", "seconds", "minutes", "hours", "days", "weeks", "rounds")
_EXPORTED = {"decided_at", "state", "context", "arm", "actual_cost", "reward", "answered_at", "probability"}
_SIMULATED = {"scenario", "policy", "run", "round", "context", "arm"}
Chosen = str | Literal[False] | None  # a column, none at all, or whichever it seems to be


@dataclass(frozen=True)
class Roles:
    """The columns of a log; `units` are those that their names say."""

    columns: Mapping[str, str]
    context: tuple[str, ...]
    guessed: tuple[str, ...]
    units: Mapping[str, str]
    is_export: bool  # written by `campaign.export`
    is_simulated: bool  # of `SimulationResult.decisions`
    unused: tuple[str, ...] = ()

    def get(self, role: str) -> str | None:
        return self.columns.get(role)

    @property
    def key_is_of_people(self) -> bool:
        """Whether the key was guessed and names people, who may come more than once."""
        return "key" in self.guessed and plain(self.columns["key"]) in _OF_PEOPLE

    def listed(self) -> tuple[tuple[str, str], ...]:
        return (*self.columns.items(), *(("context", name) for name in self.context))


def find_roles(names: Sequence[str], chosen: Mapping[str, Chosen], context: Sequence[str] | None) -> Roles:
    """`context` are columns by name, or None: the one that is called so."""
    is_export, is_simulated = set(names) >= _EXPORTED, set(names) >= _SIMULATED
    columns = {role: name for role, name in chosen.items() if isinstance(name, str) and name}
    for role, name in columns.items():
        _check_column(role, name, names)
    for name in context or ():
        _check_column("context", name, names)
    if "answered" in columns and "delay" in columns:
        raise InvalidValue("delay", columns["delay"], "name either answered= or delay=, not both")
    taken = [*columns.values(), *(context or ())]
    for name in taken:
        if taken.count(name) > 1:
            raise InvalidValue("column", name, "cannot be two things at once; name another for one of them")
    free = {name: plain(name) for name in names if name not in taken}
    guessed: list[str] = []
    units: dict[str, str] = {}
    for role in KNOWN:
        if role in columns or chosen.get(role) is not None:
            continue
        if (role == "delay" and "answered" in columns) or (role == "answered" and "delay" in columns):
            continue
        found = _candidates(role, free)
        if len(found) > 1 and role not in OPTIONAL:
            remedy = f"could each be the {role}; say which with {role}=, or {role}=False for none"
            raise InvalidValue("columns", found, remedy)
        if found and (len(found) == 1 or role == "key"):
            columns[role] = found[0]
            guessed.append(role)
            del free[found[0]]
    if context is None:
        context = next((found for tier in _CONTEXTS if (found := [one for one in free if free[one] in tier])), [])
        guessed += ["context"] if context else []
    for role in ("time", "delay"):
        if role in columns and (unit := unit_in(columns[role])):
            units[role] = unit
    _require(columns, names)
    unused = tuple(one for one in names if one not in columns.values() and one not in context)
    ordered = {role: columns[role] for role in ("time", *KNOWN) if role in columns}
    return Roles(ordered, tuple(context), tuple(guessed), units, is_export, is_simulated, unused)


def plain(name: str) -> str:
    """In lower case, with single underscores.

    >>> plain("createdAt"), plain("Delay (days)"), plain("User ID")
    ('created_at', 'delay_days', 'user_id')
    """
    split = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name[:200])
    return re.sub(r"[^a-z0-9]+", "_", split.lower()).strip("_")


def unit_in(name: str) -> str | None:
    """The unit of time that a name ends with.

    >>> unit_in("delay_h"), unit_in("Delay (days)"), unit_in("delay"), unit_in("round")
    ('hours', 'days', None, 'rounds')
    """
    *_, last = plain(name).split("_")
    is_whole = last == plain(name)
    return None if is_whole and last not in ("round", "rounds") else _UNITS.get(last)


def unit_named(field_name: str, value: object) -> str:
    """A unit of time as the caller writes it."""
    unit = _UNITS.get(value.strip().lower()) if isinstance(value, str) else None
    if unit is None:
        raise InvalidValue(field_name, value, f"must be one of {', '.join(UNIT_NAMES)}")
    return unit


def _candidates(role: str, free: Mapping[str, str]) -> list[str]:
    for tier in KNOWN[role]:
        found = [name for name, said in free.items() if said in tier]
        if role in ("time", "delay"):
            found += [name for name, said in free.items() if said not in tier and _without_unit(said) in tier]
        if found:
            return found
    return []


def _without_unit(said: str) -> str:
    head, _, last = said.rpartition("_")
    return head if last in _UNITS else said


def _check_column(role: str, name: str, names: Sequence[str]) -> None:
    if name not in names:
        raise InvalidValue(role, name, str(UnknownName("column", name, names)))


def _require(columns: Mapping[str, str], names: Sequence[str]) -> None:
    if "arm" not in columns:
        raise InvalidValue("arm", None, f"say with arm= which column tells what was done; {_offered(names)}")
    if not {"reward", "answered", "delay"} & set(columns):
        raise InvalidValue("reward", None, f"say with reward= which column tells what came of it; {_offered(names)}")


def _offered(names: Sequence[str]) -> str:
    listed = ", ".join(shown(one) for one in names[:20])
    return f"there are {listed}" + (f" and {len(names) - 20} more" if len(names) > 20 else "")
