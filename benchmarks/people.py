"""What features of people are worth: all scenarios of people, beside strata and beside knowing nothing of anybody.

    python benchmarks/people.py [--runs 20] [--out build/people] [--figures docs/img/people]

Plays `doral-otf` with features, its strata (quartiles, by the rule of `Scenario.stratified`) with policies that know
classes alone, nothing at all, chance and the truth, all on the same draws; and the paper's scenarios at the paper's own
size, once with a 0 or 1 for every class and once with classes. Writes runs.csv and table.md to the folder,
prints the table, and draws. A quarter of an hour on two cores; `--again` draws and prints what was played before.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure

import doral
from doral._arrays import Flags, Floats
from doral.experiments.kit.drawing import runs_words
from doral.pages.images import as_bytes
from doral.simulation.catalogue.people import SCENARIOS, one_class_each
from doral.simulation.results.differences import Interval, interval
from doral.simulation.results.plots import clean, colour_of, dash_of
from doral.simulation.world.truth import make_truth

FEATURES, SPLINES, PRODUCTS = "features", "splines", "splines and products"
STRATA, RIVAL, NOTHING, CHANCE, TRUTH = "strata", "explore-then-lp on strata", "nothing", "random", "oracle"
COLUMNS = (FEATURES, SPLINES, PRODUCTS, STRATA, RIVAL, NOTHING, CHANCE, TRUTH)
POLICIES: dict[str, Any] = {
    FEATURES: "doral-otf",
    SPLINES: doral.policy("doral-otf", basis="splines"),
    PRODUCTS: doral.policy("doral-otf", basis="splines", products="all"),
    STRATA: "doral-otf",
    RIVAL: "explore-then-lp",
    NOTHING: "doral-otf",
    CHANCE: "random",
    TRUTH: doral.policy("oracle", learner="auto", prior="cells"),  # which counts trials where nobody says no
}
# Bends cost time with every number, and there is nothing to bend where features are yes or no.
BENT = {"people/linear": (SPLINES,), "people/hybrid": (SPLINES,), "people/nonlinear": (SPLINES, PRODUCTS)}
PAPER = ("similar-geometric", "similar-pareto", "diverse-geometric", "diverse-pareto")
PAPER_HORIZON, PAPER_BUDGET = 170_000, 85_000
WIDTH_INCHES = 5.8


@dataclass(frozen=True, kw_only=True)
class Play:
    """A policy on a scenario, told this much of people."""

    name: str
    column: str
    scenario: doral.Scenario


def plays(only: Iterable[str]) -> list[Play]:
    """The quick ones first."""
    found = []
    for name, scenario in SCENARIOS.items():
        told = {STRATA: scenario.stratified(), NOTHING: scenario.stratified(at_most=1)}
        told |= {RIVAL: told[STRATA], CHANCE: told[STRATA]}
        skipped = {SPLINES, PRODUCTS} - set(BENT.get(name, ()))
        found += [
            Play(name=name, column=column, scenario=told.get(column, scenario))
            for column in COLUMNS
            if column not in skipped
        ]
    for name in PAPER:
        one = one_class_each(f"paper/{name}", horizon=PAPER_HORIZON, budget=PAPER_BUDGET, name=f"one-class-each/{name}")
        found.append(Play(name=f"paper/{name}", column=STRATA, scenario=one.stratified()))
        found.append(Play(name=f"paper/{name}", column=FEATURES, scenario=one))
    wanted = set(only)
    return [play for play in found if not wanted or play.name in wanted]


def measure(out: Path, chosen: list[Play], *, runs: int, seed: int, jobs: int, resume: bool) -> None:
    """Plays everything; what is done is kept if the rest is stopped."""
    is_there = resume and (out / "runs.csv").exists()
    rows = pl.read_csv(out / "runs.csv").to_dicts() if is_there else []
    done = {(row["scenario"], row["column"]) for row in rows}
    for play in chosen:
        if (play.name, play.column) in done:
            continue
        started = time.perf_counter()
        result = doral.simulate(POLICIES[play.column], play.scenario, runs=runs, seed=seed, n_jobs=jobs)
        head = {"scenario": play.name, "column": play.column}
        for one in result.outcomes:
            rows.append(
                head
                | {
                    "run": one.run,
                    "expected": one.expected,
                    "oracle": one.oracle,
                    "oracle_error": one.oracle_error,
                    "classes": play.scenario.problem.n_contexts,
                }
            )
        took = time.perf_counter() - started
        shares = [100.0 * one.expected / one.oracle for one in result.outcomes]
        print(f"{play.name:28} {play.column:25} {np.mean(shares):5.1f}%  {took:4.0f} s", file=sys.stderr, flush=True)
        pl.DataFrame(rows).write_csv(out / "runs.csv")


class Shares:
    """In percent of the oracle, by run."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self.frame = frame.with_columns(share=100.0 * pl.col("expected") / pl.col("oracle"))
        self.names = frame["scenario"].unique(maintain_order=True).to_list()
        self.runs = int(frame["run"].max()) + 1  # type: ignore[arg-type]

    def of(self, name: str, column: str) -> Floats | None:
        found = self.frame.filter(scenario=name, column=column).sort("run")
        return found["share"].to_numpy() if found.height else None

    def classes(self, name: str) -> int:
        return int(self.frame.filter(scenario=name, column=STRATA)["classes"][0])


def words(one: Interval, digits: int = 1, sign: str = "") -> str:
    return f"{one.mean:{sign}.{digits}f} [{one.low:{sign}.{digits}f}, {one.high:{sign}.{digits}f}]"


def table(shares: Shares) -> str:
    """Markdown: shares of the oracle, and what features bring beyond strata, in points, run by run."""
    heads = ("scenario", FEATURES, "worst run", SPLINES, PRODUCTS, STRATA, RIVAL, NOTHING, CHANCE, TRUTH)
    lines = [f"| {' | '.join((*heads, 'features less strata', 'best basis less strata'))} |"]
    lines.append("| --- |" + " ---: |" * (len(heads) + 1))
    for name in [one for one in shares.names if one.startswith("people/")]:
        cells = [f"`{name}`"]
        for head in heads[1:]:
            found = shares.of(name, FEATURES if head == "worst run" else head)
            if found is None:
                cells.append("")
            elif head == "worst run":
                cells.append(f"{found.min():.1f}")
            elif head in (FEATURES, SPLINES, PRODUCTS):
                cells.append(words(interval(found)))
            else:
                cells.append(f"{found.mean():.1f}" + (f" ({shares.classes(name)})" if head == STRATA else ""))
        strata = shares.of(name, STRATA)
        tried = [
            one for one in (shares.of(name, column) for column in (FEATURES, SPLINES, PRODUCTS)) if one is not None
        ]
        if strata is not None and tried:
            best = max(tried, key=lambda one: float(one.mean()))
            cells += [words(interval(tried[0] - strata), sign="+")]
            cells += [words(interval(best - strata), sign="+") if best is not tried[0] else ""]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def paper_table(shares: Shares) -> str:
    """Markdown: classes, and one 0 or 1 for each of them."""
    lines = ["| scenario of the paper | one 0 or 1 per class | classes | difference |", "| --- | ---: | ---: | ---: |"]
    for name in [one for one in shares.names if one.startswith("paper/")]:
        one, other = shares.of(name, FEATURES), shares.of(name, STRATA)
        if one is not None and other is not None:
            shown = (words(interval(one), 2), words(interval(other), 2), words(interval(one - other), 2, "+"))
            lines.append(f"| `{name}` | {' | '.join(shown)} |")
    return "\n".join(lines)


def titled(
    title: str, size: tuple[float, float], *, rows: int = 1, columns: int = 1, **more: Any
) -> tuple[Figure, Any]:
    figure = Figure(figsize=size, layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, **more)
    figure.suptitle(title, fontsize="medium", x=0.01, ha="left")
    for one in axes.flat:
        clean(one)
    return figure, axes


def legend_below(figure: Figure, axes: Any, columns: int) -> None:
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower left", ncols=columns, frameon=False, fontsize="small")


def shares_figure(shares: Shares) -> Figure:
    names = [one for one in shares.names if one.startswith("people/")]
    title = f"What is known of people ({runs_words(shares.runs)})"
    figure, axes = titled(title, (WIDTH_INCHES, 1.6 + 0.42 * len(names)))
    (panel,) = axes.flat
    for position, column in enumerate((FEATURES, PRODUCTS, STRATA, NOTHING)):
        label: str | None = column
        for row, name in enumerate(names):
            found = shares.of(name, column)
            if found is None:
                continue
            one = interval(found)
            panel.errorbar(
                one.mean,
                row + 0.16 * (position - 1.5),
                xerr=0.0 if np.isnan(one.se) else one.high - one.mean,
                fmt="osD^"[position],
                markersize=4.5,
                color=colour_of(position),
                capsize=2,
                label=label,
            )
            label = None
    panel.set_yticks(range(len(names)), [name.removeprefix("people/") for name in names])
    panel.set_ylim(len(names) - 0.5, -0.5)
    panel.set_xlabel("% of the oracle's reward")
    legend_below(figure, panel, 4)
    return figure


@dataclass(frozen=True)
class Seen:
    """Everybody who arrived in one run: whether served, and whether the oracle would have."""

    frame: pl.DataFrame
    served: Flags
    right: Flags


def seen(name: str, policy: Any, *, seed: int, run: int = 0) -> Seen:
    """All arms cost the same here, so the price is what the last one served is worth."""
    scenario = SCENARIOS[name]
    result = doral.simulate(policy, scenario, runs=1, first_run=run, seed=seed, keep_decisions=True)
    frame = result.decisions()
    truth = make_truth(scenario, seed=seed, run=run)
    assert truth.people is not None
    best = truth.counted.max(axis=2)  # (phases, N)
    problem, phases, n = scenario.problem, len(best), best.shape[1]
    shares = truth.people.shares if len(truth.people.shares) else np.full((phases, n), 1.0 / n)
    phase = (np.arange(frame.height) * phases) // frame.height
    worth = best[phase, frame["person"].to_numpy()]
    # One budget for all phases: one price.
    all_worth, all_shares = best.ravel(), shares.ravel() / phases
    order = np.argsort(-all_worth)
    last = np.searchsorted(np.cumsum(all_shares[order]), problem.budget / problem.expected_rounds)
    price = max(0.0, float(all_worth[order[min(last, order.size - 1)]]))
    return Seen(frame, frame["arm"].is_not_null().to_numpy(), worth > price)


def by_part(values: Floats, parts: int, what: Flags) -> tuple[Floats, Floats]:
    """The share of whom this is true, by parts of equally many; and the middle of each part."""
    edges = np.unique(np.quantile(values, np.linspace(0.0, 1.0, parts + 1)))
    part = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, edges.size - 2)
    middle = [float(np.median(values[part == one])) for one in range(edges.size - 1)]
    return np.array(middle), np.array([100.0 * what[part == one].mean() for one in range(edges.size - 1)])


def served_figure(seed: int) -> Figure:
    """Who gets something, by quartile of each number: one run, because effects are others in every run."""
    found = seen("people/linear", "doral-otf", seed=seed)
    names = ("age", "distance_km", "visits", "income_eur")
    title = "Who is served, by quartiles of features, in one run of people/linear"
    figure, axes = titled(title, (WIDTH_INCHES, 2.9), columns=4, sharey=True)
    for panel, name in zip(axes.flat, names, strict=True):
        values = found.frame[name].to_numpy()
        edges = np.quantile(values, [0.25, 0.5, 0.75])
        part = np.searchsorted(edges, values, side="left")
        for position, (label, who) in enumerate((("doral-otf", found.served), ("oracle", found.right))):
            heights = [100.0 * who[part == one].mean() for one in range(4)]
            panel.bar(np.arange(4) + 0.4 * position - 0.2, heights, 0.38, color=colour_of(position), label=label)
        panel.set_title(name, fontsize="small", loc="left")
        panel.set_xticks(range(4), ["low", "", "", "high"], fontsize="small")
        panel.axhline(100.0 * found.served.mean(), color="#555555", linewidth=0.8, linestyle=":")
    axes.flat[0].set_ylabel("% of arrivals that are served")
    legend_below(figure, axes.flat[0], 2)
    return figure


def bends_figure(seed: int) -> Figure:
    """Lines, bends and the truth, for the number by which the oracle is farthest from a straight line."""
    scenario = "people/nonlinear"
    told = {FEATURES: "doral-otf", SPLINES: POLICIES[SPLINES], PRODUCTS: POLICIES[PRODUCTS]}
    found = {label: seen(scenario, policy, seed=seed) for label, policy in told.items()}
    first = found[FEATURES]
    names = ("age", "distance_km", "income_eur")

    def spread(name: str) -> float:
        values = first.frame[name].to_numpy()
        middle, right = by_part(values, 20, first.right)
        line = np.polyval(np.polyfit(middle, right, 1), middle)
        return float(np.std(right - line))

    name = max(names, key=spread)
    figure, axes = titled(f"Who is served by {name}, in one run of {scenario}", (WIDTH_INCHES, 3.6))
    (panel,) = axes.flat
    values = first.frame[name].to_numpy()
    late = np.arange(values.size) >= values.size // 2  # what was learned, not how
    lines = {"oracle": first.right} | {label: one.served for label, one in found.items()}
    for position, (label, who) in enumerate(lines.items()):
        middle, height = by_part(values[late], 20, who[late])
        colour = "#000000" if label == "oracle" else colour_of(position - 1)
        dash = "-" if label == "oracle" else dash_of(position - 1)
        shown = "lines" if label == FEATURES else label
        panel.plot(middle, height, color=colour, linestyle=dash, marker="o", markersize=3, label=shown)
    panel.set_xlabel(f"{name} (twentieths of those who came in the second half)")
    panel.set_ylabel("% that are served")
    panel.set_ylim(0, 100)
    legend_below(figure, panel, 4)
    return figure


def draw(shares: Shares, into: Path, seed: int) -> None:
    figures = {"shares": shares_figure(shares), "served": served_figure(seed), "bends": bends_figure(seed)}
    into.mkdir(parents=True, exist_ok=True)
    for name, figure in figures.items():
        (into / f"{name}.png").write_bytes(as_bytes(figure, "png"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    parser.add_argument("--out", type=Path, default=Path("build/people"), help="folder for what was found")
    parser.add_argument("--figures", type=Path, help="folder for figures; without it none are drawn")
    parser.add_argument("--only", action="append", default=[], help="a scenario; may be repeated")
    parser.add_argument("--without", action="append", default=[], choices=COLUMNS, help="may be repeated")
    parser.add_argument("--resume", action="store_true", help="play what was not played before it was stopped")
    parser.add_argument("--again", action="store_true", help="do not play, but show what was found before")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.again:
        chosen = [play for play in plays(options.only) if play.column not in options.without]
        measure(options.out, chosen, runs=options.runs, seed=options.seed, jobs=options.jobs, resume=options.resume)
    shares = Shares(pl.read_csv(options.out / "runs.csv"))
    text = f"{table(shares)}\n\n{paper_table(shares)}\n"
    (options.out / "table.md").write_text(text)
    print(text)
    if options.figures is not None:
        draw(shares, options.figures, options.seed)


if __name__ == "__main__":
    main()
