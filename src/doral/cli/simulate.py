"""`doral init`, `doral simulate`: a problem file, and policies on scenarios, as a table, JSON or files."""

from __future__ import annotations

import io
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from doral.cli.command import if_interrupted, json_line, say, show
from doral.cli.experiment import GOES_ON
from doral.cli.options import (
    Cluster,
    Jobs,
    Json,
    OutFile,
    Policies,
    Seed,
    check_out,
    check_workers,
    computing_on,
    offer_scenarios,
)
from doral.errors import InvalidValue

if TYPE_CHECKING:
    import polars as pl

    from doral.simulation.results.result import SimulationResult
    from doral.simulation.results.stream import StoredRuns
    from doral.simulation.rivals.rival import NamedPolicy
    from doral.simulation.scenario.notation import ReadProblem
    from doral.simulation.scenario.scenario import Scenario

DEFAULT_FILE = "problem.toml"
DEFAULT_POLICIES = ("doral-otf", "doral", "d-alp", "d-linucb", "random")
_FRAMED, _PLAIN = (3, 2), (2, 0)  # what a table puts between columns and around them, on a terminal and in a pipe
_SCENARIO, _POLICY = "scenario", "policy"
_SHARE = "% of\noracle"
_INTERVAL, _EXPECTED_INTERVAL = "95%\ninterval", "95%\ninterval "


Row = dict[str, str]  # by the head of the column

_PROBLEM_TEXT = """\
budget = 3000

# The end: a time such as "56d", or a number of arrivals, horizon = 4000, in
# place of both lines.
until = "56d"
expected_arrivals = 4000

# An answer counts if it comes within this time (s, min, h, d, w). A bare
# number is in seconds; where horizon ends the problem, a simulation counts in
# rounds, one for each arrival.
deadline = "14d"

# "explicit": answers come also when they are 0.
# "silent": no answer and a reward of 0 look the same, as with conversions.
feedback = "explicit"

# What the budget can be spent on. cost is for one use, in the unit of the
# budget; by context: cost = {near = 8, far = 20}. Without costs, names are
# enough: arms = ["letter", "phone call", "home visit"]
arms = [
  {name = "letter", cost = 1},
  {name = "phone call", cost = 2},
  {name = "home visit", cost = 5},
]

# Contexts: kinds of arrivals, and their share of all arrivals. Where shares
# are to be learned, names alone: contexts = ["younger", "older"]
contexts = {younger = 0.6, older = 0.4}
"""

_SCENARIO_TEXT = """\
# A problem, and what is true of it, to try policies on.
#   doral simulate {file}
#   doral campaign create my-campaign {file}

name = {name}

# For simulations, as you guess it: how many arrive, on average, until the end.
arrivals = 4000

# "bernoulli": a reward is 1 with its mean as probability, otherwise 0. Or
# "gaussian" (with noise_sd), "poisson", "none".
noise = "bernoulli"

# What you know. A live campaign takes this part alone.
[problem]
{problem}
# For simulations: how late answers come, one law for all or one for each arm.
# exponential, geometric, lognormal, weibull, pareto, fixed, empirical; and
# {{never = {{law = ..., p = 0.3}}}}: three of ten never answer.
[delays]
letter = {{exponential = {{mean = "10d"}}}}
"phone call" = {{exponential = {{mean = "3d"}}}}
"home visit" = {{never = {{law = {{exponential = {{mean = "2d"}}}}, p = 0.1}}}}

# For simulations: mean rewards by context and arm.
[means]
younger = {{letter = 0.10, "phone call" = 0.30, "home visit" = 0.40}}
older = {{letter = 0.25, "phone call" = 0.35, "home visit" = 0.80}}
"""

_ALONE_TEXT = """\
# A problem, for a live campaign.
#   doral campaign create my-campaign {file}

{problem}"""

_FILE_HELP = "File to write, .toml (with comments) or .json; an existing file is not touched."
_ALONE_HELP = "Without the guesses that a simulation needs: for a live campaign alone."
_METRIC_HELP = "What the table counts: within_deadline, by_end or within_cutoff."
_RUNS_OUT_HELP = (
    "Also write one row per policy and run to this file (.csv, .parquet, .json); a .parquet is written as runs come, "
    "takes no more memory for more of them, and once interrupted goes on where it stopped."
)


def init(
    file: Annotated[Path, typer.Argument(metavar="FILE", help=_FILE_HELP)] = Path(DEFAULT_FILE),
    problem_only: Annotated[bool, typer.Option("--problem-only", help=_ALONE_HELP)] = False,
    as_json: Json = False,
) -> None:
    """Write a problem file with comments, to change as you need it."""
    _write_new(file, content(file, problem_only=problem_only))
    shown = shlex.quote(str(file))
    show(f"wrote {file}", {"file": str(file)}, as_json=as_json)
    if not problem_only:
        say(f"simulate it:     doral simulate {shown}")
    say(f"run a campaign:  doral campaign create my-campaign {shown}")


def content(file: Path, *, problem_only: bool = False) -> str:
    """Return the text of the file: TOML with comments, or the same values as JSON."""
    import json
    import tomllib

    shown = shlex.quote(str(file)).replace("\n", " ")
    shown = "".join(sign for sign in shown if sign.isprintable())  # a comment of TOML holds nothing else
    name = "".join(sign for sign in file.stem if sign.isprintable()).strip() or "problem"
    text = _ALONE_TEXT.format(file=shown, problem=_PROBLEM_TEXT)
    if not problem_only:
        text = _SCENARIO_TEXT.format(file=shown, name=json.dumps(name[:100], ensure_ascii=False), problem=_PROBLEM_TEXT)
    if file.suffix.lower() == ".json":
        return json.dumps(tomllib.loads(text), indent=2, ensure_ascii=False) + "\n"
    return text


def _write_new(file: Path, text: str) -> None:
    """Write a new file; an existing one stays, also when another process makes it at the same moment."""
    if file.is_dir():
        raise InvalidValue("file", str(file), f"is a folder; name a file in it, such as {file / DEFAULT_FILE}")
    if file.suffix.lower() not in (".toml", ".json"):
        raise InvalidValue("file", str(file), f"must end in .toml or .json, such as {file.with_suffix('.toml').name}")
    if not file.parent.is_dir():
        raise InvalidValue("file", str(file), "names a folder that does not exist; make it first")
    try:
        with file.open("x", encoding="utf-8") as new:
            new.write(text)
    except FileExistsError:
        raise InvalidValue("file", str(file), "is there already, and is not overwritten; choose another name") from None


def read_problem(path: Path, *, clock: str = "seconds", until: str | None = None) -> ReadProblem:
    """Read a problem from a TOML or JSON file, which may hold a scenario; `until` replaces its end."""
    from doral.simulation.scenario.notation import FIELD, problem_of, read_file

    return problem_of(read_file(FIELD, path), source=str(path), clock=clock, until=until)


def simulate(
    scenarios: Annotated[
        list[str],
        typer.Argument(
            metavar="SCENARIO",
            help="Names from `doral scenarios`, or TOML or JSON files as `doral init` writes them.",
            autocompletion=offer_scenarios,
        ),
    ],
    policies: Policies = None,
    runs: Annotated[int, typer.Option("--runs", "-n", min=1, help="Runs of each scenario.")] = 10,
    seed: Seed = 0,
    jobs: Jobs = -1,
    cluster: Cluster = None,
    metric: Annotated[str, typer.Option(metavar="METRIC", help=_METRIC_HELP)] = "within_deadline",
    out: OutFile = None,
    runs_out: Annotated[Path | None, typer.Option(metavar="FILE", help=_RUNS_OUT_HELP)] = None,
    wide: Annotated[
        bool, typer.Option("--wide", "-w", help="All columns of the table, however narrow the terminal is.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Let policies play scenarios, all on the same draws, and compare them.

    Without --policy: doral-otf, doral, d-alp, d-linucb and random.
    """
    check_workers(jobs, cluster)
    from doral.cli.catalogue import parse_policy, parse_scenario
    from doral.simulation.results.outcome import METRICS

    chosen = [parse_policy(word) for word in policies or DEFAULT_POLICIES]
    places = [parse_scenario(word) for word in scenarios]
    if not policies:
        chosen = [one for one in chosen if all(_can_play(one, place) for place in places)]
    if metric not in METRICS:
        raise InvalidValue("metric", metric, f"must be one of {', '.join(METRICS)}")
    check_out("out", out)
    check_out("runs_out", runs_out)
    if out is not None and runs_out is not None and out.resolve() == runs_out.resolve():
        raise InvalidValue("runs_out", str(runs_out), "is the file of --out, too; name two")
    # Only now: a misspelt name is answered at once, without the compiler.
    from doral.simulation.api import simulate as play
    from doral.simulation.results.stream import KIND, simulate_to

    result: SimulationResult | StoredRuns
    with computing_on(cluster):
        if runs_out is not None and runs_out.suffix.lower() == KIND:
            with if_interrupted(GOES_ON):
                result = simulate_to(runs_out, chosen, places, runs=runs, seed=seed, n_jobs=jobs)
        else:
            with if_interrupted("nothing was written"):
                result = play(chosen, places, runs=runs, seed=seed, n_jobs=jobs)
            if runs_out is not None:
                write_table(result.runs(), runs_out)
    if out is not None:
        write_table(result.summary(), out)
    if as_json:
        typer.echo(json_line(result.summary().to_dicts()))
    elif out is None:
        _show_result(result, metric, is_wide=wide)


def _can_play(policy: NamedPolicy, place: Scenario) -> bool:
    """Some policies know contexts alone, and no features of people."""
    from doral.engine.options import PolicyOptions
    from doral.engine.setup import check_problem

    try:
        if isinstance(policy, PolicyOptions):
            check_problem(policy, place.problem)
    except InvalidValue:
        return False
    return True


def write_table(frame: pl.DataFrame, path: Path) -> None:
    """Write a table as its file is named: .csv, .parquet or .json; lists in CSV are joined by semicolons."""
    from doral import _files

    kind = path.suffix.lower()
    if kind == ".parquet":
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        _files.write_bytes(path, buffer.getvalue())
    elif kind == ".json":
        _files.write_text(path, frame.write_json() + "\n")
    else:
        import polars as pl

        lists = [name for name, kind_ in frame.schema.items() if isinstance(kind_, pl.List)]
        _files.write_text(path, frame.with_columns(pl.col(lists).list.join(";")).write_csv())


def _show_result(result: SimulationResult | StoredRuns, metric: str, *, is_wide: bool) -> None:
    """Print a table; a terminal that is too narrow gets a table for each scenario, and fewer columns."""
    from doral.cli import terminal
    from doral.simulation.results.tables import TOO_LATE

    rows = rows_of(result, metric)
    console = terminal.output()
    width = console.width if console.is_terminal else terminal.READ_WIDTH
    heads, is_apart = _fitting(rows, list(rows[0]), None if is_wide else width)
    if is_apart:
        for scenario in dict.fromkeys(row[_SCENARIO] for row in rows):
            _show([row for row in rows if row[_SCENARIO] == scenario], heads, title=scenario)
    else:
        _show(rows, heads, is_whole=is_wide)
    if len(heads) + is_apart < len(rows[0]) and console.is_terminal:
        console.print("--wide shows all columns, --out FILE writes everything", style="dim", markup=False)
    for name in result.worthless:
        console.print(f"{name}: no arm is worth its cost: the oracle spends and earns nothing", markup=False)
    for name in result.too_late:
        console.print(f"{name}: {TOO_LATE}", markup=False)


def rows_of(result: SimulationResult | StoredRuns, metric: str) -> list[Row]:
    """All that a table can show, by columns, in words."""
    from doral.pages.numbers import number, spread

    rows: list[Row] = []
    less = f"less\n{result.policies[0]}"
    for row in result.summary().filter(metric=metric).iter_rows(named=True):
        is_first = row["policy"] == result.policies_in(row["scenario"])[0]
        share = None if row["regret_share"] is None else 100.0 * (1.0 - row["regret_share"])
        expected = None if row["expected_share"] is None else 100.0 * row["expected_share"]
        lacks_interval = is_first or row["expected_difference_low"] is None
        rows.append(
            {
                _SCENARIO: row["scenario"],
                _POLICY: row["policy"],
                "reward": number(row["reward_mean"]),
                "std.\nerror": number(row["reward_se"]),
                _SHARE: number(share, 1),
                less: "" if is_first else number(row["difference_mean"], signed=True),
                _INTERVAL: "" if is_first else spread(row["difference_low"], row["difference_high"], signed=True),
                "expected,\n%": number(expected, 1),
                "expected\nless": "" if is_first else number(row["expected_difference_mean"], signed=True),
                _EXPECTED_INTERVAL: ""
                if lacks_interval
                else spread(row["expected_difference_low"], row["expected_difference_high"], signed=True),
            }
        )
    return rows


def _fitting(rows: Sequence[Row], heads: list[str], width: int | None) -> tuple[list[str], bool]:
    """The columns to show, and whether each scenario has a table of its own."""
    less = next(head for head in heads if head.startswith("less\n"))
    essential = [_SCENARIO, _POLICY, "reward", _SHARE, less, _INTERVAL]
    for some in (heads, essential):
        if width is None or _width(rows, some) <= width:
            return some, False
    for some in (essential[1:], essential[1:4]):
        if width is not None and _width(rows, some) <= width:
            return some, True
    return essential[1:4], True


def _width(rows: Sequence[Row], heads: Sequence[str]) -> int:
    from doral.cli import terminal

    widest = [max([len(row[head]) for row in rows] + [len(line) for line in head.split("\n")]) for head in heads]
    gap, edges = _FRAMED if terminal.output().is_terminal else _PLAIN
    return sum(widest) + gap * (len(heads) - 1) + edges


def _show(rows: Sequence[Row], heads: Sequence[str], *, title: str = "", is_whole: bool = False) -> None:
    from doral.cli import terminal

    n_words = sum(head in (_SCENARIO, _POLICY) for head in heads)
    cells = [[row[head] for head in heads] for row in rows]
    terminal.show_table(heads, cells, numbers=range(n_words, len(heads)), title=title, is_whole=is_whole)
