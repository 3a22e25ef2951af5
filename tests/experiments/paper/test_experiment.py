"""The whole reproduction, in miniature: every file, and a report that needs nothing but itself."""

from __future__ import annotations

import csv
import dataclasses
import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from matplotlib import image

from doral.errors import InvalidValue
from doral.experiments.kit.batches import Extent
from doral.experiments.paper.analysis import PaperFindings
from doral.experiments.paper.cells import ABLATION, SHOWN_NAMES
from doral.experiments.paper.cells import FIGURES as SHOWN_FIGURES
from doral.experiments.paper.figures import curves, figures
from doral.pages.shell import asset
from tests.experiments.pages import Page
from tests.experiments.reproduction import TINY, make
from tests.once import Once

FIGURES = ("fig1a", "fig1b", "fig2a", "fig2b", "sweep_horizon", "sweep_accept")
TABLES = ("summary", "runs", "race", "sweep_horizon", "sweep_accept", "ablation")


@pytest.fixture(scope="module")
def made(once: Once) -> tuple[Path, PaperFindings]:
    return once("reproduction", make)


@pytest.fixture(scope="module")
def page(made: tuple[Path, PaperFindings]) -> Page:
    return Page((made[0] / "report.html").read_text(encoding="utf-8"))


def test_every_file_is_there(made: tuple[Path, PaperFindings]) -> None:
    folder, _ = made
    expected = {f"{name}.{kind}" for name in FIGURES for kind in ("png", "pdf")}
    expected |= {f"{name}.csv" for name in TABLES} | {"claims.json", "settings.json", "report.html", "parts"}
    assert {path.name for path in folder.iterdir()} == expected


def test_tables_have_their_rows(made: tuple[Path, PaperFindings]) -> None:
    def rows(name: str) -> list[dict[str, str]]:
        with (made[0] / f"{name}.csv").open(encoding="utf-8", newline="") as file:
            return list(csv.DictReader(file))

    assert len(rows("summary")) == 4 * 4 * 3
    assert len(rows("runs")) == 4 * 4 * 3
    assert len(rows("sweep_horizon")) == 4 * 4 * 4
    assert len(rows("sweep_accept")) == 4 * 9
    assert len(rows("ablation")) == 4 * len(ABLATION)
    assert {row["horizon"] for row in rows("sweep_horizon")} == {"1000", "1300", "1700", "2550"}
    assert len(json.loads((made[0] / "claims.json").read_text(encoding="utf-8"))) == 16


def test_settings_say_what_was_run(made: tuple[Path, PaperFindings]) -> None:
    read = json.loads((made[0] / "settings.json").read_text(encoding="utf-8"))
    assert (read["quick"], read["seed"], read["runs"], read["side_runs"]) == (True, 1, 3, 2)
    assert read["scenarios"]["paper/diverse-pareto"]["problem"]["budget"] == 850
    assert read["policies"]["doral(accept=3)"]["accept"] == 3
    assert set(read["versions"]) >= {"doral", "python", "numpy", "llvmlite"}


def test_a_second_call_writes_the_same_bytes(made: tuple[Path, PaperFindings], tmp_path: Path) -> None:
    folder = shutil.copytree(made[0], tmp_path / "again")
    files = [path for path in folder.iterdir() if path.is_file() and path.name != "report.html"]
    before = {path.name: path.read_bytes() for path in files}
    make(folder)
    assert {path.name: path.read_bytes() for path in files} == before


def test_figures_are_pictures(made: tuple[Path, PaperFindings]) -> None:
    for name in FIGURES:
        picture = image.imread(made[0] / f"{name}.png")
        assert picture.shape[0] > 500
        assert picture.std() > 0.05
        assert (made[0] / f"{name}.pdf").read_bytes().startswith(b"%PDF")


def test_legends_name_the_lines_they_stand_for(made: tuple[Path, PaperFindings]) -> None:
    figure = figures(made[1], TINY)["fig2b"]
    axes = figure.axes[0]
    (legend,) = figure.legends
    named = {
        entry.get_text(): line.get_color() for entry, line in zip(legend.get_texts(), legend.get_lines(), strict=True)
    }
    ends = {line.get_color(): float(np.asarray(line.get_ydata())[-1]) for line in axes.get_lines()}
    assert list(named) == list(SHOWN_NAMES.values())
    for policy, shown in SHOWN_NAMES.items():
        runs = made[1].comparison.of("paper/diverse-pareto", policy)
        assert ends[named[shown]] == pytest.approx(np.mean([one.curve[-1, 0] for one in runs]))


def test_files_of_other_settings_do_not_linger(tmp_path: Path) -> None:
    for name in ("ablation.csv", "sweep_accept.png"):
        (tmp_path / name).write_text("from an earlier call")
    make(tmp_path, Extent(runs=1, side_runs=1, shrink=100, main_only=True))
    left = {path.name for path in tmp_path.iterdir()}
    assert not left & {"ablation.csv", "sweep_accept.png"}
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert 'id="ablation"' not in text
    assert "no interval" in text
    Page(text)


def test_parts_that_nobody_will_ask_for_go_when_all_is_written(tmp_path: Path) -> None:
    def parts() -> set[str]:
        return {path.name for path in (tmp_path / "parts").iterdir()}

    short = Extent(runs=1, side_runs=1, shrink=100, main_only=True)
    make(tmp_path, short)
    earlier = parts()
    make(tmp_path, dataclasses.replace(short, runs=2))
    assert len(earlier) == len(parts()) == 4
    assert not earlier & parts()


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path: Path) -> None:
    path = tmp_path / "here"
    path.write_text("")
    with pytest.raises(InvalidValue, match="must be a folder"):
        make(path)


def test_report_needs_nothing_but_itself(page: Page) -> None:
    for reference in [*page.attributes("src"), *page.attributes("href")]:
        assert reference.startswith(("#", "data:")), reference
    assert page.count("link") == 0
    policy = next(a["content"] for tag, a in page.tags if tag == "meta" and "http-equiv" in a)
    assert policy is not None
    assert policy.startswith("default-src 'none'")
    assert not re.search(r"https?:", policy)


def test_report_style_and_script_fetch_nothing() -> None:
    texts = {name: asset(name) for name in ("shell.css", "shell.html", "sorting.js")}
    texts["page.js"] = asset("page.js", package="doral.experiments.paper")
    for name, text in texts.items():
        assert not re.search(r"https?:|@import|url\(|fetch\(|XMLHttpRequest", text), name


def test_report_shows_every_figure(page: Page) -> None:
    ids = page.attributes("id")
    assert len(ids) == len(set(ids))
    assert set(ids) >= {*FIGURES[:4], "accept", *(f"horizon-{number}" for number in range(1, 5))}
    variants = [attributes for _, attributes in page.tags if attributes.get("class") == "variant"]
    assert len(variants) == 4 * 3 * 2
    shown = {(one["data-metric"], one["data-view"]) for one in variants if "hidden" not in one}
    assert shown == {("within_deadline", "reward")}
    drawings = [attributes for tag, attributes in page.tags if tag == "svg"]
    assert len(drawings) == len(variants) + 4 + 1
    assert all(one.get("role") == "img" and one.get("aria-label") for one in drawings)


def test_a_drawing_of_the_report_has_a_part_for_each_policy(made: tuple[Path, PaperFindings], page: Page) -> None:
    """What the script hides: a line and a band, which hold the mean of the runs."""
    ids = set(page.attributes("id"))
    for place in range(len(SHOWN_NAMES)):
        assert {f"fig2b-by_end-difference-{part}-{place}" for part in ("line", "band")} <= ids
        assert f"horizon-1-line-{place}" in ids  # two runs have no band
    figure = curves(made[1], SHOWN_FIGURES[3], metric="within_deadline", view="difference")
    lines = {line.get_gid(): line for line in figure.axes[0].get_lines()}
    runs = {policy: made[1].comparison.of("paper/diverse-pareto", policy) for policy in SHOWN_NAMES}
    for place, policy in enumerate(SHOWN_NAMES):
        less = [one.curve[-1, 0] - own.curve[-1, 0] for one, own in zip(runs[policy], runs["doral"], strict=True)]
        assert np.asarray(lines[f"line-{place}"].get_ydata())[-1] == pytest.approx(np.mean(less))


def test_report_is_accessible(page: Page) -> None:
    assert page.count("h1") == 1
    assert page.count("caption") == page.count("table") == 6
    ids = set(page.attributes("id"))
    assert set(page.attributes("aria-labelledby")) <= ids
    assert {href[1:] for href in page.attributes("href")} <= ids
    assert dict(page.tags[0][1]) == {"lang": "en"} or page.tags[0][0] == "html"


def test_report_marks_a_try_out_and_escapes(made: tuple[Path, PaperFindings]) -> None:
    text = (made[0] / "report.html").read_text(encoding="utf-8")
    assert "A quick try-out" in text
    assert "doral reproduce --note &quot;&lt;b&gt;&amp;&quot;" in text


def test_failing_claims_are_shown_as_failing(made: tuple[Path, PaperFindings]) -> None:
    text = (made[0] / "report.html").read_text(encoding="utf-8")
    not_held = sum(not claim.holds for claim in made[1].claims)
    assert text.count('"mark bad"') + text.count('"mark open"') >= not_held > 0
    assert f"{16 - not_held} of 16 claims hold" in text


def test_the_text_as_printed_is_judged_too(made: tuple[Path, PaperFindings]) -> None:
    found = made[1].literal_claims
    assert found is not None
    assert [claim.id for claim in found] == [claim.id for claim in made[1].claims if not claim.id.startswith("5-")]
    held = sum(claim.holds for claim in found)
    assert f"{held} of the 12 claims about final rewards" in (made[0] / "report.html").read_text(encoding="utf-8")


def test_two_runs_have_no_interval_anywhere(tmp_path: Path) -> None:
    found = make(tmp_path, Extent(runs=2, side_runs=2, shrink=100, main_only=True))
    assert not any(found.summary[name].is_not_null().any() for name in ("difference_low", "difference_high"))
    assert {claim.verdict for claim in found.claims} == {"not shown"}
    drawn = figures(found, Extent(runs=2, side_runs=2, shrink=100, main_only=True))["fig2b"].axes[0]
    assert not drawn.collections
    assert "no interval" in drawn.get_title(loc="left")
    assert not curves(found, SHOWN_FIGURES[3], metric="by_end", view="reward").axes[0].collections
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "2 runs: no interval, which needs 3" in text
    assert not re.search(r"\[[+\N{MINUS SIGN}]?[\d.,]+, [+\N{MINUS SIGN}]?[\d.,]+\]", text.partition("<script")[0])
