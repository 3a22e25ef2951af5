"""`doral plan`: from a log to a decision."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from doral.cli.command import if_interrupted, json_line, say
from doral.cli.log import LOG_HELP, as_options, read, takes_columns, words_of
from doral.cli.options import (
    DEFAULT_STORAGE,
    Cluster,
    Jobs,
    Json,
    OutFolder,
    Policies,
    Seed,
    Storage,
    check_workers,
    computing_on,
    refuse_memory,
)
from doral.errors import InvalidValue

if TYPE_CHECKING:
    from doral.planning.plan import Plan

_BUDGET_HELP = "What may be spent next, in all; as much as the log spent if not given."
_HORIZON_HELP = "For how many arrivals; as many as the log has if not given."
_DEADLINE_HELP = "How old an answer may be to count, with its unit: 14d, 36h; learned if not given."
_DRAWS_HELP = "Posterior draws that policies play; more make intervals surer."
_CREATE_HELP = "Also start a campaign of this name, which knows what the log says."


@takes_columns
def plan(
    log: Annotated[Path, typer.Argument(metavar="LOG", help=LOG_HELP)],
    columns: Mapping[str, Any],
    budget: Annotated[float | None, typer.Option(help=_BUDGET_HELP)] = None,
    horizon: Annotated[int | None, typer.Option(metavar="ARRIVALS", help=_HORIZON_HELP)] = None,
    deadline: Annotated[str | None, typer.Option(metavar="TIME", help=_DEADLINE_HELP)] = None,
    policies: Policies = None,
    truths: Annotated[int | None, typer.Option("--truths", min=2, help=_DRAWS_HELP)] = None,
    seed: Seed = 0,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    out: OutFolder = Path("plan"),
    as_json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the answer.")] = False,
    create: Annotated[str | None, typer.Option(metavar="NAME", help=_CREATE_HELP)] = None,
    storage: Storage = DEFAULT_STORAGE,
) -> None:
    """From a log to a decision: how long to wait, what a budget buys, what to run."""
    check_workers(jobs, cluster)
    from doral.cli.catalogue import parse_policy
    from doral.cli.terminal import Progress
    from doral.planning.report.folder import check, save, to_dict

    # First what can be wrong with the request: reading and planning take a while.
    check(out)
    chosen = [parse_policy(word) for word in policies or ()]
    if create is not None:
        refuse_memory(storage)
        _refuse_taken(storage, create)
    from doral.planning.make import plan as make_plan
    from doral.planning.report.text import text

    asked = {"budget": budget, "horizon": horizon, "deadline": deadline, "truths": truths}

    def worded(columns: Mapping[str, Any]) -> str:
        return command_of(log, columns, asked, policies=policies or (), seed=seed)

    read_ = read(log, columns, command_of=worded)
    if not quiet:
        say(f"{as_options(read_.reading.text())}\n")
    with if_interrupted("nothing was written"), computing_on(cluster), Progress(is_quiet=quiet) as progress:
        made = make_plan(
            read_,
            **{name: value for name, value in asked.items() if value is not None},  # type: ignore[arg-type]
            policies=chosen or None,
            seed=seed,
            n_jobs=jobs,
            on_progress=progress,
            command=worded(columns),
        )
        progress(1.0, "writing the page")
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
    from doral import _check

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
    """Return the command that gives the same numbers."""
    words = ["doral", "plan", str(log)]
    exact = {name: _exact(value) if isinstance(value, float) else value for name, value in asked.items()}
    words += words_of({**exact, **columns})
    words += [word for one in policies for word in ("--policy", one)]
    return shlex.join([*words, "--seed", str(seed)])


def _exact(value: float) -> str:
    """Whole numbers without a point, others with all their digits."""
    return str(int(value)) if value.is_integer() and abs(value) < 1e15 else repr(value)
