"""What to type after a campaign was created. On standard error, and only for people: scripts know what they do."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

from doral.cli.exits import say

if TYPE_CHECKING:
    from doral.problem import Problem


def say_next(name: str, problem: Problem, storage: str) -> None:
    """Decide, take the answer, look."""
    if sys.stderr.isatty():
        say("\n".join(["what to type next:", *next_steps(name, problem, storage)]))


def next_steps(name: str, problem: Problem, storage: str) -> list[str]:
    """The three commands, as they can be typed."""
    from doral.cli.campaign_options import DEFAULT_STORAGE

    where = [] if storage == DEFAULT_STORAGE else ["--storage", storage]
    context = [problem.context_names[0]] if problem.n_contexts > 1 else []
    person = [word for one in problem.person_names for word in ("--feature", f"{one}=...")]
    start = ["doral", "campaign"]
    called = ["--", name] if name.startswith("-") else [name]
    return [
        f"  {shlex.join([*start, 'decide', *where, *person, *called, *context])}",
        f"  {shlex.join([*start, 'feedback', *where, *called])} DECISION 1",
        f"  {shlex.join([*start, 'show', *where, *called])}",
    ]
