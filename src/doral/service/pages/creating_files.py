"""A campaign out of a file: a problem as `doral init` writes it, or what `doral plan` has written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import PurePath
from typing import Any

from doral.errors import InvalidValue
from doral.service.pages.creating_values import Asked
from doral.service.pages.forms_reading import MAX_FILE_BYTES, SentFile
from doral.simulation.scenario.notation import FIELD, problem_of, read_bytes

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
