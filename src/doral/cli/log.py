"""`doral log check`, `doral evaluate`: how a log is read, and what other policies would have brought by it."""

from __future__ import annotations

import inspect
import io
import json
import shlex
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from doral.cli.command import MISUSED, as_typed, command, group, if_interrupted, json_line, say
from doral.cli.options import FIGURE_KINDS, Json, OutFile, Seed, check_out, extended

if TYPE_CHECKING:
    from doral.evaluation.evaluation import Evaluation
    from doral.logs.log import Log, Reading, SeenColumn
    from doral.logs.summary import UnclearColumns

app = group("log", "Look at a log before it is planned with.")

LOG_HELP = "CSV or Parquet: one row per arrival."
_PANEL = "Columns (understood from names and data where these leave no doubt)"
_MANY = {"context", "arm", "positive", "nothing"}  # may be given again
# By option of `read_log`: what its value is, and what it says.
_COLUMNS = {
    "time": ("COLUMN", "When they arrived."),
    "context": ("COLUMN", "A column that says which context it was; again for more."),
    "arm": ("COLUMN", "What was done. Given again: each column is an arm, and 1 where it was done."),
    "reward": ("COLUMN", "What came of it."),
    "answered": ("COLUMN", "When the answer came; empty: not yet."),
    "delay": ("COLUMN", "Or how long it took."),
    "cost": ("COLUMN", "The list price."),
    "paid": ("COLUMN", "What was paid in the end."),
    "probability": ("COLUMN", "Of what was done."),
    "key": ("COLUMN", "By which duplicates are known."),
    "observed_until": ("COLUMN|TIME", "A column, or a time: until when answers would have been seen."),
    "positive": ("WORD", "A reward that counts as 1; again for more."),
    "nothing": ("NAME", "The arm of doing nothing."),
    "feedback": ("explicit|silent", "silent: no news is 0."),
    "time_unit": ("UNIT", "Of times that are numbers."),
    "delay_unit": ("UNIT", "Of delays that are numbers."),
    "date_order": ("ORDER", "day-first or month-first, of dates such as 03/04/2026."),
    "currency": ("NAME", "What costs are in, such as EUR."),
    "outcome": ("NAME", "What a reward of 1 is, such as booking."),
}
COLUMN_OPTIONS = tuple(_COLUMNS)
_OTHER_OPTIONS = ("deadline", "budget", "horizon", "out", "jobs", "create", "storage")
_TYPED = {name: f"--{name.replace('_', '-')}" for name in (*COLUMN_OPTIONS, *_OTHER_OPTIONS)}


def as_options(text: object) -> str:
    """Spell arguments of Python as options of the command line.

    >>> as_options("say with arm= which it is; feedback='silent' says otherwise")
    'say with --arm which it is; --feedback silent says otherwise'
    """
    return as_typed(text, _TYPED)


def takes_columns(function: Callable[..., None]) -> Any:
    """Give a command the options that say which column of a log is what; they reach it as `columns`."""
    options = [
        inspect.Parameter(
            name,
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                list[str] | None if name in _MANY else str | None,
                typer.Option(_TYPED[name], metavar=metavar, help=words, rich_help_panel=_PANEL),
            ],
        )
        for name, (metavar, words) in _COLUMNS.items()
    ]

    def called(**words: Any) -> None:
        columns = {name: value for name in _COLUMNS if (value := words.pop(name)) not in (None, [])}
        if len(columns.get("arm", [])) == 1:
            columns["arm"] = columns["arm"][0]
        function(**words, columns=columns)

    return extended(called, function, without="columns", last=options)


def read(path: Path, columns: Mapping[str, Any], *, command_of: Callable[[Mapping[str, Any]], str]) -> Log:
    """Return the log; where its columns are unclear, say what to ask, with the command that `command_of` words."""
    from doral.logs.read import read_log
    from doral.logs.summary import UnclearColumns

    try:
        return read_log(path, **columns)
    except UnclearColumns as error:
        say(_question_text(error, command_of(error.suggested)))
        raise typer.Exit(MISUSED) from None


def words_of(columns: Mapping[str, Any]) -> list[str]:
    """Return options as they are typed; False is an empty one."""
    words = []
    for name, value in columns.items():
        for one in value if isinstance(value, list | tuple) else [value]:
            if one is not None:
                words += [f"--{name.replace('_', '-')}", "" if one is False else str(one)]
    return words


def _question_text(error: UnclearColumns, again: str) -> str:
    """Return what is asked, what each column holds, and the command to run."""
    from doral.logs.summary import question_lines, seen_table

    lines = ["doral: it is not clear which column is what", *(f"  {one}" for one in question_lines(error))]
    lines += ["What each column holds:", seen_table(error.seen), "Run, with the right columns:", f"  {again}"]
    for question in error.questions:
        others = [f"--{question.role.replace('_', '-')} {shlex.quote(one)}" for one in question.candidates[1:]]
        others += [f"--{question.role.replace('_', '-')} ''"] if question.can_be_none else []
        if others:
            lines.append(f"  or instead: {', '.join(others)}")
    return as_options("\n".join(lines))


@app.callback()
def _group() -> None:
    pass


@command(app, example="doral log check log.csv --currency EUR")
@takes_columns
def check(
    log: Annotated[Path, typer.Argument(metavar="LOG", help=LOG_HELP)],
    columns: Mapping[str, Any],
    as_json: Json = False,
) -> None:
    """Say how a log is read: which column is what, what was assumed and left out, or what is unclear."""
    from doral.logs.read import read_log
    from doral.logs.summary import UnclearColumns, seen_table

    try:
        read_ = read_log(log, **columns)
    except UnclearColumns as error:
        again = shlex.join(["doral", "log", "check", str(log), *words_of(error.suggested)])
        if as_json:
            asked = [
                {"role": one.role, "candidates": list(one.candidates), "why": as_options(one.why)}
                for one in error.questions
            ]
            unclear = {"is_clear": False, "questions": asked, "columns": _seen(error.seen), "command": again}
            typer.echo(json_line(unclear))
        else:
            say(_question_text(error, again))
        raise typer.Exit(MISUSED) from None
    reading = read_.reading
    next_ = shlex.join(["doral", "plan", str(log), *words_of(_settled(reading, columns))])
    if as_json:
        assumed = [{"option": one.what, "value": one.value, "why": as_options(one.why)} for one in reading.assumptions]
        clear = {
            "is_clear": True,
            "rows": reading.rows,
            "arrivals": len(read_),
            "assumptions": assumed,
            "notes": [as_options(one) for one in reading.notes],
            "columns": _seen(reading.seen),
            "command": next_,
        }
        typer.echo(json_line(clear))
        return
    typer.echo(as_options(reading.text()))
    typer.echo(f"What each column holds:\n{seen_table(reading.seen)}" if reading.seen else "")
    typer.echo(f"{read_!r}\nNext, if this is right:\n  {next_}")


def _settled(reading: Reading, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Return all options by which the log is read in the same way again, guessing nothing."""
    settled: dict[str, Any] = {}
    for role, name in reading.columns:
        settled.setdefault(role, []).append(name)
    is_plain = {"feedback", "currency"}
    settled |= {one.what: one.value for one in reading.assumptions if one.what in is_plain}
    return {**settled, **columns}


def _seen(seen: tuple[SeenColumn, ...]) -> list[dict[str, Any]]:
    return [
        {
            "column": one.name,
            "kind": one.kind,
            "levels": one.levels,
            "share_empty": one.share_empty,
            "low": one.low,
            "high": one.high,
        }
        for one in seen
    ]


_POLICIES, _ESTIMATORS = ["uniform", "best", "lp"], ["ips", "snips", "dr"]
_POLICY_HELP = (
    "uniform, nothing, always:ARM, best, lp, a name from `doral policies` (what it settles on), or a JSON file with "
    "{context: arm} or {context: {arm: probability}}, also NAME=FILE. May be given again."
)
_DEADLINE_HELP = "What comes later counts nothing: 14d, 36h; without it, the longest that the log supports."
_BUDGET_HELP = "What lp may spend, in all, for as many arrivals as the log has; without it, what was paid."
_PROPENSITIES_HELP = "given (as the log tells them) or estimated (counted by context and time); without it, what fits."
_PLOT_HELP = "Also draw values and overlap into this file (.png, .svg, .pdf)."


@takes_columns
def evaluate(
    log: Annotated[Path, typer.Argument(metavar="LOG", help=LOG_HELP)],
    columns: Mapping[str, Any],
    policies: Annotated[list[str], typer.Option("--policy", "-p", metavar="POLICY", help=_POLICY_HELP)] = _POLICIES,
    deadline: Annotated[str | None, typer.Option(metavar="TIME", help=_DEADLINE_HELP)] = None,
    budget: Annotated[float | None, typer.Option(help=_BUDGET_HELP)] = None,
    propensities: Annotated[str | None, typer.Option(metavar="WORD", help=_PROPENSITIES_HELP)] = None,
    estimators: Annotated[
        list[str], typer.Option("--estimator", metavar="NAME", help="ips, snips or dr. May be given again.")
    ] = _ESTIMATORS,
    seed: Seed = 0,
    out: OutFile = None,
    plot: Annotated[Path | None, typer.Option(metavar="FILE", help=_PLOT_HELP)] = None,
    as_json: Json = False,
) -> None:
    """Value other policies by a log of what was done: intervals, and whether the log can tell."""
    check_out("out", out)
    check_out("plot", plot, FIGURE_KINDS)
    from doral.evaluation.evaluate import evaluate as value

    def worded(columns: Mapping[str, Any]) -> str:
        words = ["doral", "evaluate", str(log), *(word for one in policies for word in ("--policy", one))]
        return shlex.join([*words, *words_of({"deadline": deadline, "budget": budget, **columns})])

    read_ = read(log, columns, command_of=worded)
    say(f"{as_options(read_.reading.text())}\n")
    per_arrival = None if budget is None else budget / len(read_)
    if per_arrival is not None:
        say(f"doral: --budget {budget:g} is for {len(read_):,} arrivals: {per_arrival:.3g} for each\n")
    with if_interrupted("nothing was written"):
        result = value(
            read_,
            [_policy(one) for one in policies],
            deadline=deadline,
            budget=per_arrival,
            propensities=propensities,  # type: ignore[arg-type]  # words that are checked there
            estimators=estimators,  # type: ignore[arg-type]
            seed=seed,
        )
    if plot is not None:
        from doral import _files

        drawn = io.BytesIO()
        result.plot().savefig(drawn, format=plot.suffix.lower()[1:])
        _files.write_bytes(plot, drawn.getvalue())
    if out is not None:
        _write(result, out)
    if as_json:
        typer.echo(json_line(result.to_dict()))
    elif out is None:
        _show(result)


def _policy(word: str) -> Any:
    """A policy NAME=FILE is a file under a name of its own."""
    name, is_named, path = word.partition("=")
    return (name, Path(path)) if is_named and path.endswith(".json") else word


def _write(result: Evaluation, path: Path) -> None:
    from doral import _files
    from doral.cli.simulate import write_table

    if path.suffix.lower() == ".json":
        _files.write_text(path, json.dumps(result.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        write_table(result.table(), path)


def _show(result: Evaluation) -> None:
    from doral.cli import terminal
    from doral.evaluation.evaluation import between, number

    rows = [
        [
            one.policy,
            one.estimator,
            number(one.value),
            between(one.low, one.high),
            number(one.cost),
            "" if one.per_cost is None else number(one.per_cost),
            "" if one.estimator == "mean" else number(one.difference, signed=True),
            "" if one.estimator == "mean" else between(one.difference_low, one.difference_high, signed=True),
            f"{one.ess:,.0f}",
            one.verdict.partition(":")[0],
        ]
        for one in result.values
    ]
    heads = ["policy", "by", "value", "95% interval", "cost", "per cost", "to what was done", "95% interval"]
    if rows:
        terminal.show_table([*heads, "worth", "the log"], rows, numbers=range(2, 9))
    terminal.output().print(result.text(), markup=False, soft_wrap=True)
