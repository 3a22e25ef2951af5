"""How far a long call is: what the line says, where it is shown, that nothing is left of it; pictures in notebooks."""

from __future__ import annotations

import base64
import io
import os
import re
import time
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import doral
from doral import _progress
from doral._progress import Progress
from doral.compiled.store import announce_compiling
from doral.pages.figure import Figure
from tests.small_worlds import make_scenario

ROOT = Path(__file__).parents[1]


class Screen(io.StringIO):
    """A terminal that remembers."""

    def isatty(self) -> bool:
        super().isatty()  # which asks whether it is closed
        return True

    def lines(self) -> list[str]:
        """All that was ever shown."""
        return [one.strip() for one in re.split(r"[\r\n]", self.getvalue()) if one.strip()]

    def left(self) -> str:
        """What can still be seen at the end."""
        rows = []
        for row in self.getvalue().split("\n"):
            seen = ""
            for part in row.split("\r"):
                seen = part + seen[len(part) :]
            rows.append(seen.rstrip())
        return "\n".join(rows).strip()


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch) -> Screen:
    made = Screen()
    # pytest puts its own in the place of `sys.stderr` when a test begins.
    monkeypatch.setattr(_progress, "sys", SimpleNamespace(stderr=made, modules={}))
    monkeypatch.delenv("DORAL_PROGRESS", raising=False)
    monkeypatch.setattr(_progress, "_FIRST_S", 0.02)
    monkeypatch.setattr(_progress, "_EVERY_S", 0.01)
    return made


class Sleepy:
    """A policy that takes its time."""

    def __init__(self, problem: doral.Problem, seed: int) -> None: ...

    def decide(self, arrival: doral.Arrival) -> int | None:
        time.sleep(0.0005)
        return None

    def observe(self, answer: doral.Answer) -> None: ...


class Impatient(Sleepy):
    def decide(self, arrival: doral.Arrival) -> int | None:
        if arrival.round == 200:
            raise KeyboardInterrupt
        return super().decide(arrival)


def shown_at(progress: Progress, monkeypatch: pytest.MonkeyPatch, *finished: float) -> list[str]:
    """What is said after each piece of work that is finished so many seconds after the start."""
    said = []
    for at in finished:
        monkeypatch.setattr(time, "monotonic", lambda at=at: 100.0 + at)
        progress.advance()
        said.append(progress.line(100.0 + at))
    return said


def test_the_first_run_compiles_and_says_nothing_about_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    with Progress("simulating", [1.0] * 40, "runs", is_shown=False) as progress:
        said = shown_at(progress, monkeypatch, 20.0, 21.0, 22.0, 23.0)
        assert said[0] == "simulating: 1 of 40 runs, 20 s gone"
        assert said[1] == "simulating: 2 of 40 runs, 21 s gone, about 40 s left"
        assert said[3] == "simulating: 4 of 40 runs, 23 s gone, about 35 s left"
        assert progress.line(100.0 + 33.0) == "simulating: 4 of 40 runs, 33 s gone, about 25 s left"  # it goes on


def test_long_runs_weigh_more_and_workers_finish_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    with Progress("simulating", [1.0, 1.0, 1.0, 97.0], "runs", is_shown=False) as progress:
        assert shown_at(progress, monkeypatch, 5.0, 6.0, 7.0)[-1].endswith("7 s gone, about 1 min 35 s left")
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    with Progress("simulating", [1.0] * 12, "runs", is_shown=False, workers=4) as progress:
        said = shown_at(progress, monkeypatch, 5.0, 5.1, 5.2, 5.3, 9.0, 9.1, 9.2, 9.3)
        assert all("left" not in one for one in said[:-1])
        assert said[-1].endswith("about 4 s left")


def test_stages_with_numbers_say_how_long_the_rest_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "monotonic", lambda: 100.0)
    with Progress("planning", is_shown=False) as progress:
        for at, share, words in (
            (1.0, 0.1, "reading"),
            (2.0, 0.2, "policies play"),
            (22.0, 0.3, "truth 1 of 8"),
            (24.0, 0.4, "truth 2 of 8"),
        ):
            monkeypatch.setattr(time, "monotonic", lambda at=at: 100.0 + at)
            progress.stage(words, share)
        assert progress.line(124.0) == "planning: truth 2 of 8, 24 s gone, about 12 s left"
        progress.stage("writing")
        assert progress.line(125.0) == "planning: writing, 25 s gone, about 11 s left"


@pytest.mark.parametrize(("seconds", "words"), [(8.9, "8 s"), (75.0, "1 min 15 s"), (7_300.0, "2 h 1 min")])
def test_durations(seconds: float, words: str) -> None:
    assert _progress._duration(seconds) == words


def test_the_line_is_rewritten_and_nothing_is_left_of_it(screen: Screen, capfd: pytest.CaptureFixture[str]) -> None:
    doral.simulate(Sleepy, make_scenario(), runs=3)
    assert any(re.fullmatch(r"simulating: [0-3] of 3 runs, \d s gone.*", one) for one in screen.lines())
    assert screen.left() == ""
    assert capfd.readouterr().out == ""


def test_whoever_interrupts_it_sees_a_clean_line(screen: Screen) -> None:
    with pytest.raises(KeyboardInterrupt):
        doral.simulate(Impatient, make_scenario(), runs=3)
    assert screen.lines()
    assert screen.left() == ""
    with Progress("simulating", is_shown=True) as progress:  # the next one may show itself
        assert progress._is_shown


def test_words_that_stay_do_not_run_into_the_line(screen: Screen) -> None:
    with Progress("simulating", [1.0], "runs"):
        time.sleep(0.1)
        announce_compiling("the engine", 20.0)
        time.sleep(0.1)
    assert screen.left() == "doral: compiling the engine for this machine, once: about 20 s"


def test_nobody_is_bothered_who_did_not_ask(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    doral.simulate(Sleepy, make_scenario(), runs=1, on_run=lambda: seen.append(1))  # the caller counts
    assert seen == [1]
    doral.simulate(Sleepy, make_scenario(), runs=1, progress=False)
    monkeypatch.setenv("DORAL_PROGRESS", "0")
    doral.simulate(Sleepy, make_scenario(), runs=1)
    monkeypatch.delenv("DORAL_PROGRESS")
    monkeypatch.setattr(Screen, "isatty", lambda self: False)
    doral.simulate(Sleepy, make_scenario(), runs=1)
    assert screen.getvalue() == ""
    doral.simulate(Sleepy, make_scenario(), runs=1, progress=True)
    assert screen.lines()
    with pytest.raises(doral.InvalidValue, match="progress = 'yes'"):
        doral.simulate(Sleepy, make_scenario(), progress="yes")  # type: ignore[arg-type]


def test_a_call_inside_another_is_part_of_it(screen: Screen) -> None:
    with Progress("planning", is_shown=True) as outer, Progress("simulating", is_shown=True) as inner:
        outer.stage("policies play")
        assert (outer._is_shown, inner._is_shown) == (True, False)
        time.sleep(0.1)
    assert {one.split(":")[0] for one in screen.lines()} == {"planning"}
    assert any("policies play" in one for one in screen.lines())


def test_a_narrow_terminal_and_a_closed_one(screen: Screen, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.get_terminal_size", lambda: os.terminal_size((30, 10)))
    _progress.rewrite("x" * 100)
    assert max(len(one) for one in screen.lines()) == 29
    screen.close()
    _progress.rewrite("nobody is there")
    _progress.clear()
    assert not _progress.is_watched()


# --- pictures ------------------------------------------------------------------------------------------------------


def test_without_a_screen_a_picture_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    figure = doral.simulate("random", make_scenario(), runs=1).plot()
    assert isinstance(figure, Figure)
    png, shape = figure._repr_png_()
    assert png.startswith(b"\x89PNG")
    assert shape["width"] == pytest.approx(614, abs=2)
    monkeypatch.setattr("doral.pages.figure._viewer", lambda: None)
    monkeypatch.setattr("doral.pages.figure._is_notebook", lambda: False)
    with pytest.warns(UserWarning, match=r'figure.savefig\("picture.png"\)'):
        figure.show()


def test_with_a_screen_the_viewer_opens_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    opened: list[list[str]] = []
    monkeypatch.setattr("doral.pages.figure._viewer", lambda: ["viewer"])
    monkeypatch.setattr("doral.pages.figure._is_notebook", lambda: False)
    monkeypatch.setattr("doral.pages.figure.subprocess.Popen", lambda command, **_: opened.append(command))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    Figure().show()
    ((viewer, path),) = opened
    assert viewer == "viewer"
    assert Path(path).read_bytes().startswith(b"\x89PNG")


CELLS = (
    """
import time, doral
from doral.compiled.store import announce_compiling
from tests.test_progress import Sleepy
from tests.small_worlds import make_scenario
class Slow(Sleepy):
    def decide(self, arrival):
        time.sleep(0.0015)
        return None
result = doral.simulate([Slow, Sleepy], make_scenario(), runs=1)
""",
    "announce_compiling('the engine', 20.0)",
    "result",
    "result.plot()",
    "result.plot('share').show()",
    "result.difference('Slow', 'Sleepy')",
)


def test_a_notebook_shows_pictures_tables_and_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a real kernel, without any magic."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    if find_spec("ipykernel") is None:  # not imported: whoever has it loaded is taken for a notebook
        pytest.skip("ipykernel is not installed")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT / "src"), str(ROOT)]))
    monkeypatch.delenv("DORAL_PROGRESS", raising=False)
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(one) for one in CELLS])
    nbclient.NotebookClient(
        book, timeout=60, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    outputs: list[list[Any]] = [cell.outputs for cell in book.cells]

    def said(i: int) -> str:
        return "".join(one.text for one in outputs[i] if one.output_type == "stream" and one.name == "stderr")

    assert re.search(r"simulating: 0 of 1 runs, \d s gone", said(0))
    assert said(0).split("\r")[-1].strip() == ""
    assert "compiling the engine for this machine, once: about 20 s" in said(1)
    assert "Result of a simulation" in outputs[2][0].data["text/html"]
    assert outputs[2][0].data["text/plain"].startswith("<SimulationResult: Slow, Sleepy on")
    for i in (3, 4):
        assert base64.b64decode(outputs[i][0].data["image/png"]).startswith(b"\x89PNG")
        assert len(outputs[i]) == 1
    assert "Slow and Sleepy earn the same" in outputs[5][0].data["text/html"]
