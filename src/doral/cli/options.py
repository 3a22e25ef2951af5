"""Options that several commands share, spelled once; what a shell offers for them; the store that they name."""

from __future__ import annotations

import inspect
import os
import re
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from doral.cli.command import say, show
from doral.errors import InvalidValue
from doral.live.errors import StorageError

if TYPE_CHECKING:
    from doral.live.store import Store

DEFAULT_STORAGE = "sqlite:///campaigns.db"
_MOST_OFFERED = 200  # more than anybody reads
_PATIENCE_S = 0.5  # with a database that another program writes to

# Shells put what is offered on the line as it is: `$(...)` in a name would be run, and a blank would end it.
_PLAIN = re.compile(r"[\w./@%+=:,-]+")

Offer = tuple[str, str]  # a value, and what it is


def offer_scenarios(incomplete: str) -> Iterable[Offer]:
    """Return names of the catalogue, problem files, and folders in which there may be some."""
    from doral.simulation.catalogue.descriptions import SCENARIO_WORDS

    return [*_fitting(SCENARIO_WORDS, incomplete), *_problem_files(incomplete)]


def offer_policies(incomplete: str) -> Iterable[Offer]:
    """Return names of presets and rivals."""
    from doral.simulation.catalogue.descriptions import RIVAL_WORDS

    return [*offer_presets(incomplete), *_fitting(RIVAL_WORDS, incomplete)]


def offer_presets(incomplete: str) -> Iterable[Offer]:
    """Return names of the policies that a campaign can run."""
    from doral.simulation.catalogue.descriptions import PRESET_WORDS

    return _fitting(PRESET_WORDS, incomplete)


def offer_campaigns(ctx: typer.Context, incomplete: str) -> Iterable[str]:
    """Return names of the campaigns in the storage, if that is a file; a server may be far away."""
    storage = ctx.params.get("storage") or os.environ.get("DORAL_STORAGE") or DEFAULT_STORAGE
    # A shell must not show a traceback in the middle of a line that is typed.
    with suppress(Exception):
        fitting = [name for name in _campaigns_of(str(storage)) if name.startswith(incomplete)]
        return [name for name in fitting if _PLAIN.fullmatch(name) and not name.startswith("-")][:_MOST_OFFERED]
    return []


def _campaigns_of(storage: str) -> list[str]:
    """Read names without the engine that a store brings along; nothing is created, locked or migrated."""
    import sqlite3
    from urllib.parse import quote

    from doral.live.storage.urls import read_sqlite

    path = read_sqlite(storage).path
    with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, timeout=_PATIENCE_S)) as file:
        return [str(name) for (name,) in file.execute("SELECT name FROM campaigns ORDER BY name")]


def _fitting(groups: Mapping[str, Mapping[str, str]], incomplete: str) -> list[Offer]:
    return [(name, words) for group in groups.values() for name, words in group.items() if name.startswith(incomplete)]


def _problem_files(incomplete: str) -> Iterator[Offer]:
    """What is typed stays as it is typed, "./" and all."""
    typed, slash, start = incomplete.rpartition("/")
    with suppress(OSError):
        for path in sorted(Path(typed + slash or ".").iterdir())[:_MOST_OFFERED]:
            if not path.name.startswith(start) or (path.name.startswith(".") and not start):
                continue
            if not _PLAIN.fullmatch(path.name):
                continue
            if path.is_dir():
                yield f"{typed}{slash}{path.name}/", "folder"
            elif path.suffix.lower() in (".toml", ".json"):
                yield f"{typed}{slash}{path.name}", "file"


_STORAGE_HELP = "sqlite:///file.db or postgresql://host/db."
_TIME_HELP = "When it happened, for back-fill: seconds since 1970 or 2026-03-01T12:00Z (or a round)."
_TOLERANCE_HELP = "How far clocks may disagree; a time that is further ahead is refused. 300 if not given."
_CLUSTER_HELP = (
    "Compute on a cluster: tcp://HOST:8786 (Dask), ray://HOST:10001, ray://auto, ray://local. Changes no number."
)
_FOLDER_HELP = "Folder for the page, its figures and tables."
_POLICY_HELP = "A name from `doral policies`, with options as in doral:accept=3,exploration=0.5. May be given again."
_KEY_HELP = "The same key again gives the same answer, and changes nothing."

# One spelling for one idea: docs/reference/command_line.md has the table.
Storage = Annotated[str, typer.Option("--storage", "-s", envvar="DORAL_STORAGE", metavar="URL", help=_STORAGE_HELP)]
Json = Annotated[bool, typer.Option("--json", help="JSON instead of text.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Check it and show what it would do; nothing is stored.")]
Seed = Annotated[int, typer.Option("--seed", min=0, help="The same seed gives the same numbers, to the bit.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", help="Parallel workers; -1 uses all cores. Changes no number.")]
Cluster = Annotated[str | None, typer.Option("--cluster", metavar="ADDRESS", help=_CLUSTER_HELP)]
OutFile = Annotated[
    Path | None,
    typer.Option("--out", "-o", metavar="FILE", help="Write the table to this file (.csv, .parquet, .json) instead."),
]
OutFolder = Annotated[Path, typer.Option("--out-dir", metavar="FOLDER", help=_FOLDER_HELP)]
Policies = Annotated[
    list[str] | None,
    typer.Option("--policy", "-p", metavar="POLICY", help=_POLICY_HELP, autocompletion=offer_policies),
]
Name = Annotated[str, typer.Argument(metavar="CAMPAIGN", help="Name of the campaign.", autocompletion=offer_campaigns)]
Key = Annotated[str | None, typer.Option("--key", help=_KEY_HELP)]
At = Annotated[str | None, typer.Option("--at", metavar="TIME", help=_TIME_HELP)]
Tolerance = Annotated[float | None, typer.Option("--clock-tolerance", metavar="SECONDS", help=_TOLERANCE_HELP)]

TABLE_KINDS = (".csv", ".parquet", ".json")
FIGURE_KINDS = (".png", ".svg", ".pdf")


def check_out(option: str, path: Path | None, kinds: tuple[str, ...] = TABLE_KINDS) -> None:
    """Refuse a file that cannot be written before the work, not after it."""
    if path is None:
        return
    if path.is_dir():
        raise InvalidValue(option, str(path), "is a folder; name a file")
    if path.suffix.lower() not in kinds:
        raise InvalidValue(option, str(path), f"must end in {', '.join(kinds)}")
    if not path.parent.is_dir():
        raise InvalidValue(option, str(path), "names a folder that does not exist; make it first")
    if not os.access(path.parent, os.W_OK):
        raise InvalidValue(option, str(path), "is in a folder that cannot be written to")


def check_workers(jobs: int, cluster: str | None) -> None:
    """Refuse wrong workers before the work."""
    if jobs == 0:
        raise InvalidValue("jobs", jobs, "must not be 0; -1 uses all cores")
    if cluster is None:
        return
    if jobs != -1:
        raise InvalidValue("jobs", jobs, "counts workers of this machine; leave it out with --cluster, which uses all")
    from doral.simulation.workers.cluster import read_address

    read_address(cluster)


def computing_on(cluster: str | None) -> AbstractContextManager[None]:
    """As long as it lasts, workers are those of the cluster; without one, of this machine."""
    if cluster is None:
        return nullcontext()
    from doral.simulation.workers.cluster import joined

    return joined(cluster)


class Time(float):
    """A time in seconds since 1970, or a round; messages show it as it was typed."""

    def __new__(cls, value: float, typed: str) -> Time:
        """The number, and the word for it."""
        time = super().__new__(cls, value)
        time._typed = typed
        return time

    _typed: str

    def __repr__(self) -> str:
        return self._typed


def parse_time(field: str, word: str) -> Time:
    """Return a time from a number, or from a date and time that says its zone.

    >>> time = parse_time("at", "2026-01-01T00:00Z")
    >>> time, float(time), parse_time("at", "12")
    (2026-01-01T00:00Z, 1767225600.0, 12)
    """
    try:
        return Time(float(word), word)
    except ValueError:
        pass
    try:
        time = datetime.fromisoformat(word)
    except ValueError:
        remedy = "must be seconds since 1970 (or a round), or a time such as 2026-03-01T12:00:00Z"
        raise InvalidValue(field, word, remedy) from None
    if time.tzinfo is None:
        raise InvalidValue(field, word, "must say its time zone, such as 2026-03-01T12:00Z or 2026-03-01T12:00+02:00")
    return Time(time.timestamp(), word)


def parse_optional_time(field: str, word: str | None) -> Time | None:
    """Return the same, or None where the option was not given."""
    return None if word is None else parse_time(field, word)


def parse_number(field: str, word: str) -> float:
    """Return a number with a decimal point.

    >>> parse_number("reward", "-0.5")
    -0.5
    """
    try:
        return float(word)
    except ValueError:
        raise InvalidValue(field, word, "must be a number, such as 0.5") from None


@contextmanager
def opened(
    storage: str, *, create: bool = False, clock_tolerance: float | None = None, dry_run: Sequence[str] | None = None
) -> Iterator[Store]:
    """Open the store.

    Args:
        storage: Its URL.
        create: Whether it is made where it is missing.
        clock_tolerance: How far clocks may disagree, in seconds.
        dry_run: Names of the campaigns of a copy, on which the command is tried; None: the store itself.
    """
    refuse_memory(storage)
    from doral.live.runtime.session import CLOCK_TOLERANCE_S
    from doral.live.state.own_policy import read_code
    from doral.live.store import open as open_store

    if not create:
        _refuse_missing(storage)
    tolerance_s = CLOCK_TOLERANCE_S if clock_tolerance is None else clock_tolerance
    code = read_code(os.environ.get("DORAL_CODE", ""))
    with open_store(storage, create=create, clock_tolerance_s=tolerance_s, code=code) as store:
        if dry_run is None:
            yield store
            return
        import tempfile

        say("doral: a dry run: nothing is stored")
        with tempfile.TemporaryDirectory(prefix="doral-dry-run-") as folder:
            copy = Path(folder) / "copy.db"
            store.backup(copy, names=dry_run)
            with open_store(f"sqlite:///{copy}", clock_tolerance_s=tolerance_s, code=code) as tried:
                yield tried


Result = tuple[str, Any] | None  # what a command prints: in words, and as data; None: it has printed


def on_campaign(*, changes: bool = True, has_clock: bool = False) -> Callable[[Callable[..., Result]], Any]:
    """Give a command the campaign that it names, and print what it returns.

    Args:
        changes: Whether it takes --dry-run.
        has_clock: Whether it takes --clock-tolerance.
    """
    last = [
        _parameter("as_json", Json, False),
        *([_parameter("dry_run", DryRun, False)] if changes else []),
        *([_parameter("clock_tolerance", Tolerance, None)] if has_clock else []),
        _parameter("storage", Storage, DEFAULT_STORAGE),
    ]

    def decorated(function: Callable[..., Result]) -> Any:
        def called(name: str, *, storage: str = DEFAULT_STORAGE, **words: Any) -> None:
            tried = [name] if words.pop("dry_run", False) else None
            tolerance = words.pop("clock_tolerance", None)
            as_json = words.get("as_json", False) if takes_json else words.pop("as_json", False)
            with opened(storage, clock_tolerance=tolerance, dry_run=tried) as store:
                result = function(store.campaign(name), **words)
                if result is not None:
                    show(*result, as_json=as_json)

        takes_json = "as_json" in inspect.signature(function).parameters
        return extended(called, function, without="campaign", first=[_parameter("name", Name)], last=last)

    return decorated


def extended(
    called: Callable[..., Any],
    function: Callable[..., Any],
    *,
    without: str,
    first: Sequence[inspect.Parameter] = (),
    last: Sequence[inspect.Parameter] = (),
) -> Any:
    """Return `called` with the name, help and parameters of `function`, without one of them and with more."""
    hints = typing.get_type_hints(function, localns={"Campaign": object}, include_extras=True)
    own = [
        one.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[one.name])
        for one in inspect.signature(function).parameters.values()
        if one.name != without
    ]
    known = {one.name for one in own}
    called.__name__, called.__doc__ = function.__name__, function.__doc__
    parameters = [*first, *own, *(one for one in last if one.name not in known)]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return called


def _parameter(name: str, annotation: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def refuse_memory(storage: str) -> None:
    """Refuse a store that ends with the command."""
    if storage.startswith("memory:"):
        remedy = "nothing would be kept after this command; give sqlite:///file.db or postgresql://..."
        raise InvalidValue("storage", storage, remedy)


def _refuse_missing(storage: str) -> None:
    if not storage.startswith("sqlite:"):
        return
    from doral.live.storage.urls import read_sqlite

    path = read_sqlite(storage).path
    if not path.exists():
        raise StorageError(
            f"{path}: there is no such file; is --storage (or DORAL_STORAGE) right? `doral campaign create` makes it"
        )


def confirm_name(name: str, *, thing: str) -> None:
    """Ask for a name again before what cannot be undone."""
    if not sys.stdin.isatty():
        raise InvalidValue("campaign", name, f"cannot be confirmed here; to {thing} it for good, add --yes")
    # (Typer's own prompt would put a blank into the output.)
    typer.echo(f"All of {name} will be gone for good. Type its name again: ", err=True, nl=False)
    again = sys.stdin.readline().strip()
    if again != name:
        raise InvalidValue("name", again, f"is not {name}; nothing was deleted")
