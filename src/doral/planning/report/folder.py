"""The folder of a plan: the page, everything as JSON, the problem and the policy to run, figures and tables."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import shlex
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from doral import _files
from doral._version import VERSION
from doral.errors import InvalidValue
from doral.logs.source import FORMULA
from doral.planning.plan import Plan
from doral.planning.report.tables import Table

PAGE_FILE, PLAN_FILE, PROBLEM_FILE, POLICY_FILE = "index.html", "plan.json", "problem.json", "policy.json"
_IS_FORMULA = re.compile(FORMULA)


def check(folder: Path) -> None:
    """Complain before the work, not after it."""
    if folder.exists() and not folder.is_dir():
        raise InvalidValue("out", str(folder), "must be a folder, and there is a file of that name")


def save(plan: Plan, folder: str | Path) -> Path:
    """Write everything; returns where the page lies. Files that only an earlier plan had are removed."""
    from doral.planning.report.figures import FIGURE_NAMES, drawings, files_of, markup_of
    from doral.planning.report.page import page
    from doral.planning.report.tables import TABLE_NAMES, tables

    folder = Path(folder)
    check(folder)
    drawn = drawings(plan)
    images = files_of(drawn)
    listed = tables(plan)
    content: dict[str, bytes] = {
        PLAN_FILE: as_json(to_dict(plan)),
        PROBLEM_FILE: as_json(plan.problem.to_dict()),
        POLICY_FILE: as_json(policy_dict(plan)),
        **images,
        **{f"{name}.csv": as_csv(one) for name, one in listed.items()},
        # Last: whoever finds the page finds all that it speaks of.
        PAGE_FILE: page(plan, drawn=drawn, pictures=markup_of(drawn), tables=listed).encode(),
    }
    folder.mkdir(parents=True, exist_ok=True)
    possible = [f"{name}.{kind}" for name in FIGURE_NAMES for kind in ("png", "pdf")]
    possible += [f"{name}.csv" for name in TABLE_NAMES]
    for name in possible:
        if name not in content:
            (folder / name).unlink(missing_ok=True)
    for name, data in content.items():
        _files.write_bytes(folder / name, data)
    return folder / PAGE_FILE


def to_dict(plan: Plan) -> dict[str, Any]:
    """Everything that a plan says, in plain values that JSON can hold: what is not finite is None."""
    log = plan.log
    found: dict[str, Any] = {
        "doral": VERSION,
        "answer": plan.answer,
        "recommendation": plan.recommendation,
        "deadline": plan.deadline,
        "clock": {"unit": log.clock.unit, "told": log.clock.told},
        "log": {
            "name": log.name,
            "rows": len(log),
            "answered": int(log.is_answered.sum()),
            "arms": log.arms,
            "contexts": log.contexts,
            "start": None if log.start is None else log.start.isoformat(),
            "span": log.span,
            "feedback": log.feedback,
            "paid_when": log.paid_when,
            "has_delays": log.has_delays,
            "reading": log.reading,
        },
        **{name: getattr(plan, name) for name in _FACTS},
        "problem": plan.problem.to_dict(),
        "seed": plan.seed,
        "took_s": plan.took_s,
        "command": plan.command,
    }
    return {name: plain(value) for name, value in found.items()}


_FACTS = (
    "earnings", "arms", "cells", "curves", "findings", "tails", "responsiveness", "waiting", "prices", "nothing",
    "spending", "more", "evaluation",
)  # fmt: skip


def policy_dict(plan: Plan) -> dict[str, Any]:
    """What to run, and why."""
    advised = plan.recommendation
    return {
        "policy": advised.known_as,
        "options": {name: plain(value) for name, value in advised.options},
        "reasons": list(advised.reasons),
        "limits": list(advised.limits),
    }


def start_command(plan: Plan) -> str:
    """What starts a campaign with the problem that is written, and the policy that is recommended."""
    advised = plan.recommendation
    assert advised.known_as is not None
    options = ",".join(f"{name}={_typed(value)}" for name, value in advised.options)
    policy = f"{advised.known_as}:{options}" if options else advised.known_as
    words = ["doral", "campaign", "create", "NAME", PROBLEM_FILE, "--policy", policy]
    return shlex.join([*words, *([] if plan.log.clock.unit == "seconds" else ["--clock", "rounds"])])


def _typed(value: Any) -> str:
    """Return the value of an option as the command line takes it."""
    if isinstance(value, list | tuple):
        return "+".join(map(str, value)) or "none"
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def plain(value: Any) -> Any:
    """A value for JSON, whatever holds it."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if isinstance(value, np.generic | np.ndarray):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain(one) for one in value]
    told = getattr(value, "to_dict", None)
    if callable(told):
        return plain(told())
    if is_dataclass(value) and not isinstance(value, type):
        return {one.name: plain(getattr(value, one.name)) for one in fields(value)}
    return str(value)


def as_json(content: Any) -> bytes:
    """A file of JSON, which knows neither NaN nor infinity."""
    return (json.dumps(plain(content), indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def as_csv(table: Table) -> bytes:
    """A file of CSV in which no text is run as a formula."""
    written = io.StringIO(newline="")
    writer = csv.writer(written, lineterminator="\n")
    writer.writerow([_harmless(key) for key in table.keys])
    writer.writerows([_harmless(row[key]) for key in table.keys] for row in table.rows)
    return written.getvalue().encode()


def _harmless(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return f"'{value}" if isinstance(value, str) and _IS_FORMULA.match(value) else value
