"""What `doral plan` does: read, show how, plan with progress, say the answer, write the page."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from doral import _check
from doral.cli.campaign_words import json_line
from doral.cli.cluster import computing_on
from doral.cli.exits import say
from doral.cli.log_options import as_options
from doral.cli.log_reading import read, words_of
from doral.cli.policy_words import parse_policy
from doral.cli.stages import Stages
from doral.errors import InvalidValue
from doral.planning.plan import Plan
from doral.planning.report.folder import check, save, to_dict


def run(
    log: Path,
    *,
    columns: Mapping[str, Any],
    asked: Mapping[str, Any],
    policies: Sequence[str],
    seed: int,
    jobs: int,
    cluster: str | None,
    out: Path,
    as_json: bool,
    is_quiet: bool,
    create: str | None,
    storage: str,
) -> None:
    """Everything that the command does."""
    # First what can be wrong with the request: reading and planning take a while.
    check(out)
    chosen = [parse_policy(word) for word in policies]
    if create is not None:
        _refuse_taken(storage, create)
    from doral.planning.make import plan
    from doral.planning.report.text import text

    def worded(columns: Mapping[str, Any]) -> str:
        return command_of(log, columns, asked, policies=policies, seed=seed)

    found = read(log, columns, command_of=worded)
    if not is_quiet:
        say(f"{as_options(found.reading.text())}\n")
    wanted = {name: value for name, value in asked.items() if value is not None}
    with computing_on(cluster), Stages(is_quiet=is_quiet) as shown:
        made = plan(
            found,
            **wanted,
            policies=chosen or None,
            seed=seed,
            n_jobs=jobs,
            on_progress=shown,
            command=worded(columns),
        )
        shown(1.0, "writing the page")
        page = save(made, out)
    typer.echo(json_line(to_dict(made)) if as_json else text(made))
    say(f"page: {page}")
    if create is not None:
        _create(made, storage, create, chosen)
        say(f"created {create}")


def _create(made: Plan, storage: str, name: str, chosen: Sequence[object]) -> None:
    """Open the campaign with what is recommended, or with the only policy that was asked for."""
    from doral.engine.options import PolicyOptions
    from doral.planning.campaign import create_campaign

    (asked,) = chosen if len(chosen) == 1 else (None,)
    policy = asked if made.recommendation.known_as is None and isinstance(asked, PolicyOptions) else None
    if made.recommendation.known_as is None and policy is None:
        remedy = "was not created: the plan recommends no policy; name one to start it all the same: --policy doral-otf"
        raise InvalidValue("create", name, remedy)
    create_campaign(made, storage, name, policy=policy)


def _refuse_taken(storage: str, name: str) -> None:
    """A file that is there already can be asked at once; a server is asked when the campaign is created."""
    _check.name("name of a campaign", name)
    if storage.startswith(("postgresql:", "postgres:")):
        return
    from doral.live.storage.urls import read_sqlite
    from doral.live.store import open as open_store

    if not storage.startswith("sqlite:"):
        open_store(storage)  # it says what it must be
    path = read_sqlite(storage).path
    if path.exists():
        with open_store(storage) as store:
            if name in store.list():
                raise InvalidValue("create", name, "is the name of a campaign already; choose another")
    elif not path.parent.is_dir():
        raise InvalidValue("storage", storage, "there is no such folder; make it first")


def command_of(
    log: Path, columns: Mapping[str, Any], asked: Mapping[str, Any], *, policies: Sequence[str], seed: int
) -> str:
    """The command that gives the same numbers."""
    words = ["doral", "plan", str(log)]
    exact = {name: _exact(value) if isinstance(value, float) else value for name, value in asked.items()}
    words += words_of({**exact, **columns})
    words += [word for one in policies for word in ("--policy", one)]
    return shlex.join([*words, "--seed", str(seed)])


def _exact(value: float) -> str:
    """Whole numbers without a point, others with all their digits."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
