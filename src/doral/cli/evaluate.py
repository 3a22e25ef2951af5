"""`doral evaluate`: what other policies would have brought, from a log."""

from __future__ import annotations

import io
import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doral import _files
from doral.cli import terminal
from doral.cli.exits import say
from doral.cli.log_options import as_options
from doral.cli.log_reading import read, words_of
from doral.cli.simulate import check_file
from doral.errors import InvalidValue

if TYPE_CHECKING:
    from doral.evaluation.evaluation import Evaluation

FIGURE_KINDS = (".png", ".svg", ".pdf")


def run(
    source: Path,
    policies: list[str],
    *,
    columns: Mapping[str, Any],
    deadline: str | None,
    budget: float | None,
    propensities: str | None,
    estimators: list[str],
    seed: int,
    out: Path | None,
    plot: Path | None,
) -> None:
    """Everything that the command does. A policy NAME=FILE is a file under a name of its own."""
    check_file("out", out)
    if plot is not None and plot.suffix.lower() not in FIGURE_KINDS:
        raise InvalidValue("plot", str(plot), f"must end in {', '.join(FIGURE_KINDS)}")
    from doral.evaluation.evaluate import evaluate

    def worded(columns: Mapping[str, Any]) -> str:
        words = ["doral", "evaluate", str(source), *(word for one in policies for word in ("--policy", one))]
        return shlex.join([*words, *words_of({"deadline": deadline, "budget": budget, **columns})])

    log = read(source, columns, command_of=worded)
    say(f"{as_options(log.reading.text())}\n")
    result = evaluate(
        log,
        [_policy(one) for one in policies],
        deadline=deadline,
        budget=budget,
        propensities=propensities,  # type: ignore[arg-type]  # words that are checked there
        estimators=estimators,  # type: ignore[arg-type]
        seed=seed,
    )
    if plot is not None:
        drawn = io.BytesIO()
        result.plot().savefig(drawn, format=plot.suffix.lower()[1:])
        _files.write_bytes(plot, drawn.getvalue())
    if out is not None:
        _write(result, out)
    else:
        _show(result)


def _policy(word: str) -> Any:
    name, is_named, path = word.partition("=")
    return (name, Path(path)) if is_named and path.endswith(".json") else word


def _write(result: Evaluation, path: Path) -> None:
    kind = path.suffix.lower()
    if kind == ".json":
        _files.write_text(path, json.dumps(result.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    elif kind == ".parquet":
        buffer = io.BytesIO()
        result.table().write_parquet(buffer)
        _files.write_bytes(path, buffer.getvalue())
    else:
        _files.write_text(path, result.table().write_csv())


def _show(result: Evaluation) -> None:
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
