"""`doral simulate`: policies on scenarios, as a table or a file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from doral import _files
from doral.cli import simulation_table
from doral.cli.cluster import computing_on
from doral.cli.policy_words import parse_policy
from doral.engine.options import PolicyOptions
from doral.engine.setup import check_problem
from doral.errors import InvalidValue
from doral.simulation.catalogue.lookup import SCENARIOS
from doral.simulation.catalogue.lookup import named_scenario as scenario
from doral.simulation.results.outcome import METRICS
from doral.simulation.rivals.rival import NamedPolicy
from doral.simulation.scenario.files import read_scenario
from doral.simulation.scenario.scenario import Scenario

if TYPE_CHECKING:
    import polars as pl

    from doral.simulation.results.result import SimulationResult
    from doral.simulation.results.stream import StoredRuns

FILE_KINDS = (".csv", ".parquet", ".json")


def check_file(option: str, path: Path | None) -> None:
    """Complain before the work, not after it."""
    if path is None:
        return
    if path.suffix.lower() not in FILE_KINDS:
        raise InvalidValue(option, str(path), f"must end in {', '.join(FILE_KINDS)}")
    if not path.parent.is_dir():
        raise InvalidValue(option, str(path), "names a folder that does not exist; make it first")
    if path.is_dir():
        raise InvalidValue(option, str(path), "is a folder; name a file")


def run(
    scenarios: list[str],
    policies: list[str],
    *,
    are_chosen: bool = True,
    runs: int,
    seed: int,
    jobs: int,
    cluster: str | None = None,
    metric: str,
    out: Path | None,
    runs_out: Path | None,
    wide: bool = False,
) -> None:
    """Everything that the command does. Policies that nobody chose are left out where they know classes alone."""
    chosen = [parse_policy(word) for word in policies]
    places = [scenario_of(word) for word in scenarios]
    if not are_chosen:
        chosen = [one for one in chosen if all(_can_play(one, place) for place in places)]
    if metric not in METRICS:
        raise InvalidValue("metric", metric, f"must be one of {', '.join(METRICS)}")
    check_file("out", out)
    check_file("runs-out", runs_out)
    if out is not None and runs_out is not None and out.resolve() == runs_out.resolve():
        raise InvalidValue("runs-out", str(runs_out), "is the file of --out, too; name two")
    # Only now: a misspelt name is answered at once, without the compiler.
    from doral.simulation.api import simulate
    from doral.simulation.results.stream import KIND, simulate_to

    result: SimulationResult | StoredRuns
    with computing_on(cluster):
        if runs_out is not None and runs_out.suffix.lower() == KIND:
            result = simulate_to(runs_out, chosen, places, runs=runs, seed=seed, n_jobs=jobs)
        else:
            result = simulate(chosen, places, runs=runs, seed=seed, n_jobs=jobs)
            if runs_out is not None:
                _write(result.runs(), runs_out)
    if out is not None:
        _write(result.summary(), out)
    if out is None:
        simulation_table.show(result, metric, is_wide=wide)


def scenario_of(word: str) -> Scenario:
    """Return a scenario by name, or from a file."""
    path = Path(word)
    if path.suffix.lower() in (".toml", ".json") or (word not in SCENARIOS and path.exists() and not path.is_dir()):
        return read_scenario(path)
    return scenario(word)


def _can_play(policy: NamedPolicy, place: Scenario) -> bool:
    """Some policies know classes alone."""
    try:
        if isinstance(policy, PolicyOptions):
            check_problem(policy, place.problem)
    except InvalidValue:
        return False
    return True


def _write(frame: pl.DataFrame, path: Path) -> None:
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
