"""The command line as people and scripts meet it: a process with output and an exit code."""

from __future__ import annotations

import json
import os
import pty
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import doral
from doral.cli import main
from doral.cli.app import app
from doral.cli.catalogue import parse_policy
from doral.engine.options import OPTION_NAMES, PRESETS, PolicyOptions
from doral.errors import InvalidValue, UnknownName
from tests.cli.processes import environment

COMMAND = [sys.executable, "-m", "doral"]
QUICK = ["experiment", "reproduce", "--quick", "--runs", "2", "--main-only", "--seed", "5"]
HELP_LIMIT_S = 0.5
SHOW_HELP = """
import sys
sys.argv = ["doral", "--help"]
import doral.cli
try:
    doral.cli.main()
except SystemExit:
    pass
print([name for name in ("llvmlite", "polars", "matplotlib", "scipy", "numpy") if name in sys.modules])
"""


def run(*words: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *words], cwd=cwd, env=environment(), capture_output=True, text=True, timeout=300, check=False
    )


@pytest.fixture
def run_here(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., subprocess.CompletedProcess[str]]:
    """The same without a process of its own, which would import everything anew; in an empty folder."""
    for name, value in environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)

    def run_here(*words: str) -> subprocess.CompletedProcess[str]:
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", ["doral", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        code = ended.value.code
        said = capfd.readouterr()
        return subprocess.CompletedProcess(words, code if isinstance(code, int) else bool(code), said.out, said.err)

    return run_here


RunHere = Callable[..., subprocess.CompletedProcess[str]]


def test_version() -> None:
    done = run("--version")
    assert (done.returncode, done.stdout) == (0, f"doral {doral.__version__}\n")


def test_help_is_quick_and_free_of_heavy_imports() -> None:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        [sys.executable, "-c", SHOW_HELP], env=environment(), capture_output=True, text=True, timeout=60, check=True
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.stdout.endswith("[]\n")
    # Processor time: other tests run at the same time.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < HELP_LIMIT_S


def test_lists() -> None:
    assert "paper/diverse-pareto" in run("scenarios").stdout
    assert "d-linucb/literal" in run("policies").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["simulate", "paper/divers-pareto"], "'paper/diverse-pareto'"),
        (["simulate", "paper/diverse-pareto", "-p", "dorl"], "'doral'"),
        (["simulate", "paper/diverse-pareto", "-p", "doral:accep=3"], "'accept'"),
        (["simulate", "paper/diverse-pareto", "-p", "doral:accept=three"], "accept = 'three':"),
        (["simulate", "paper/diverse-pareto", "-p", "doral:learner=best"], "learner = 'best':"),
        (["simulate", "paper/diverse-pareto", "--runs", "0"], "--runs"),
        (["simulate", "paper/diverse-pareto", "--seed", "-1"], "--seed"),
        (["simulate", "paper/diverse-pareto", "--jobs", "0"], "--jobs 0:"),
        (["simulate", "paper/diverse-pareto", "--metric", "profit"], "--metric 'profit':"),
        (["simulate", "paper/diverse-pareto", "--out", "table.xls"], "--out 'table.xls':"),
        (["simulate", "paper/diverse-pareto", "--out", "missing/table.csv"], "--out 'missing/table.csv':"),
        (["simulate", "paper/diverse-pareto", "--runs", "many"], "--runs"),
        (["simulate"], "SCENARIO"),
        (["experiment", "reproduce", "--runs", "0"], "--runs"),
        (["experiment", "compare", "stress/drif"], "'stress/drift'"),
        (["experiment", "compare", "-p", "doral:accept=three"], "accept = 'three':"),
        (["experiment", "compare", "-p", "doral:accept=11"], "accept = 11:"),
        (["experiment", "compare", "-p", "doral", "-p", "doral"], "--policy 'doral':"),
        (["experiment", "compare", "stress/drift", "stress/drift"], "SCENARIO 'stress/drift':"),
        (["experiment", "compare", "--runs", "0"], "--runs"),
        (["experiment", "compare", "--runs", "2000000"], "--runs 2000000:"),
        (["experiment", "compare", "--jobs", "0"], "--jobs 0:"),
        (["experiment", "compare", "--out-dir", "file"], "--out-dir 'file':"),
        (["conquer"], "conquer"),
    ],
)
def test_misuse_is_one_message_and_exit_code_2(
    words: list[str], message: str, tmp_path: Path, run_here: RunHere
) -> None:
    (tmp_path / "file").write_text("")
    done = run_here(*words)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_misuse_in_a_process_of_its_own(run_here: RunHere, tmp_path: Path) -> None:
    for words in (["simulate", "paper/divers-pareto"], ["experiment", "compare", "--runs", "0"]):
        ours, theirs = run_here(*words), run(*words, cwd=tmp_path)
        assert (theirs.returncode, theirs.stdout) == (2, "") == (ours.returncode, ours.stdout)
        assert theirs.stderr.splitlines()[-1] == ours.stderr.splitlines()[-1]


def test_simulate_prints_a_table_without_frames_into_a_pipe() -> None:
    done = run("simulate", "paper/diverse-pareto", "-p", "doral:accept=3", "-p", "random", "--runs", "2")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].strip() == "paper/diverse-pareto"  # too wide for a column of its own
    assert lines[2].split()[:2] == ["policy", "reward"]
    assert [line.split()[0] for line in lines[3:]] == ["doral(accept=3)", "random"]
    assert len(lines[3].split()) == 3
    assert all(len(line.rstrip()) <= 80 for line in lines)
    assert not re.search("[─━│┃\x1b]", done.stdout)


def test_simulate_writes_files(tmp_path: Path) -> None:
    words = [
        "simulate",
        "paper/diverse-pareto",
        "-p",
        "random",
        "--runs",
        "2",
        "--runs-out",
        str(tmp_path / "runs.csv"),
    ]
    for kind in ("csv", "parquet", "json"):
        done = CliRunner().invoke(app, [*words, "--out", str(tmp_path / f"summary.{kind}")])
        assert (done.exit_code, done.stdout) == (0, ""), done.output
    frames = [
        pl.read_csv(tmp_path / "summary.csv"),
        pl.read_parquet(tmp_path / "summary.parquet"),
        pl.DataFrame(json.loads((tmp_path / "summary.json").read_text())),
    ]
    means = [frame["reward_mean"].to_list() for frame in frames]
    assert means[0] == means[1] == means[2]
    runs = pl.read_csv(tmp_path / "runs.csv")
    assert runs["run"].to_list() == [0, 1]
    assert runs["accepted"][0].startswith("arm-1;arm-2")


def test_a_disk_error_is_one_line_and_exit_code_1(tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.mkdir()
    (blocked / "parts").write_text("a file where a folder should be")
    done = run(*QUICK, "--out-dir", str(blocked))
    assert done.returncode == 1
    assert re.fullmatch(r"doral: File exists: .*/blocked/parts\n", done.stderr)


def test_a_reader_that_leaves_is_no_crash() -> None:
    process = subprocess.Popen(
        [*COMMAND, "scenarios"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment()
    )
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 1
    assert errors == b""


def _interrupted(folder: Path) -> tuple[int, str]:
    """Start it, press Ctrl-C in the third batch."""
    process = subprocess.Popen(
        [*COMMAND, *QUICK, "--jobs", "2", "--out-dir", str(folder)],
        stderr=subprocess.PIPE,
        env=environment(),
        text=True,
    )
    assert process.stderr is not None
    seen = ""
    while "diverse-geometric" not in seen:
        line = process.stderr.readline()
        assert line, f"ended before it could be interrupted: {seen}"
        seen += line
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=120)
    return process.returncode, rest


def test_an_interrupted_reproduction_goes_on_and_ends_the_same(tmp_path: Path) -> None:
    code, said = _interrupted(tmp_path / "interrupted")
    assert code == 130
    assert "interrupted; " in said
    assert "Traceback" not in said
    kept = sorted(path.name for path in (tmp_path / "interrupted" / "parts").iterdir())
    assert 2 <= len(kept) < 4
    assert not (tmp_path / "interrupted" / "claims.json").exists()

    resumed = run(*QUICK, "--jobs", "2", "--out-dir", str(tmp_path / "interrupted"))
    assert resumed.returncode == 0, resumed.stderr
    assert resumed.stderr.count("kept from before") == len(kept)
    whole = run(*QUICK, "--jobs", "1", "--out-dir", str(tmp_path / "whole"))
    assert whole.returncode == 0, whole.stderr
    assert "kept from before" not in whole.stderr
    assert "16 claims hold" in whole.stdout

    names = {path.name for path in (tmp_path / "whole").iterdir() if path.is_file()} - {"report.html"}
    assert {"claims.json", "summary.csv", "runs.csv", "settings.json", "fig1a.png", "fig2b.pdf"} <= names
    for name in names:
        assert (tmp_path / "whole" / name).read_bytes() == (tmp_path / "interrupted" / name).read_bytes(), name
    parts = {path.name: path.read_bytes() for path in (tmp_path / "whole" / "parts").iterdir()}
    assert parts == {path.name: path.read_bytes() for path in (tmp_path / "interrupted" / "parts").iterdir()}


COMPARE = ["experiment", "compare", "stress/short", "stress/drift", "--quick", "-p", "doral-otf", "-p", "random"]


def test_compare_prints_a_table_and_goes_on_where_it_stopped(tmp_path: Path) -> None:
    words = [*COMPARE, "-p", "doral:accept=2", "--seed", "5", "--runs", "2", "--main-only", "--out-dir", str(tmp_path)]
    done = run(*words, "--jobs", "1")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["scenario", "doral-otf", "random", "doral(accept=2)"]
    assert [line.split()[0] for line in lines[1:3]] == ["short", "drift"]
    shown = [[float(word.rstrip("*=")) for word in line.split()[1:]] for line in lines[1:3]]
    frame = pl.read_csv(tmp_path / "shares.csv")
    assert [round(share, 1) for share in frame["share_percent"]] == [share for row in shown for share in row]
    assert all(line.count("*") == 1 for line in lines[1:3])
    assert "quick" in lines[-2]
    assert lines[-1] == f"report: {tmp_path / 'report.html'}"
    assert not re.search("[─━│┃\x1b]", done.stdout)
    command = (
        "doral experiment compare stress/short stress/drift -p doral-otf -p random -p doral:accept=2 --runs 2 --seed 5"
    )
    assert f"{command} --quick --main-only" in (tmp_path / "report.html").read_text(encoding="utf-8")

    files = [path for path in tmp_path.iterdir() if path.is_file() and path.name != "report.html"]
    before = {path.name: path.read_bytes() for path in files}
    parts = sorted((tmp_path / "parts").iterdir())
    parts[0].unlink()
    again = run(*words, "--jobs", "2")
    assert again.returncode == 0, again.stderr
    assert again.stderr.count("kept from before") == len(parts) - 1
    assert again.stdout == done.stdout
    assert {path.name: path.read_bytes() for path in files} == before


@pytest.mark.parametrize("columns", [40, 80, 200])
def test_a_narrow_terminal_gets_whole_columns(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from rich.console import Console

    from doral.cli import experiment, terminal
    from doral.experiments.beyond.analysis import BeyondFindings, shares_table
    from doral.experiments.kit.batches import Cell, CellResult

    result = doral.simulate(list(PRESETS), doral.scenario("stress/short"), runs=2)
    cell = Cell(
        study="table",
        scenario=doral.scenario("stress/short"),
        policies=tuple(doral.PolicyOptions.named(name) for name in PRESETS),
        runs=2,
    )
    shares = shares_table([CellResult(cell=cell, result=result)])
    found = BeyondFindings(compared=result, shares=shares, claims=[], ingredients=None, sweeps=None, courses=None)
    console = Console(width=columns, force_terminal=True, record=True, highlight=False, color_system="truecolor")
    monkeypatch.setattr(terminal, "output", lambda: console)
    with console.capture() as capture:
        experiment.show_shares(found)
    assert "\x1b[" in capture.get()
    plain = re.sub(r"\x1b\[[\d;]*m", "", capture.get())
    assert all(len(line) <= columns for line in plain.splitlines())
    words = plain.split()
    for name in PRESETS:
        assert words.count(name) == 1
        share = shares.filter(policy=name)["share_percent"][0]
        assert any(word.rstrip("*=") == f"{share:.1f}" for word in words)


def test_policy_words() -> None:
    one = parse_policy("doral/literal:accept=none,until_end=yes, exploration=5e-1,censoring=min_age,cutoff=300")
    assert isinstance(one, PolicyOptions)
    assert (one.accept, one.until_end, one.exploration, one.censoring, one.cutoff) == (None, True, 0.5, "min_age", 300)
    few, none = parse_policy("doral:printed=window+rate"), parse_policy("doral/literal:printed=none")
    assert isinstance(few, PolicyOptions)
    assert isinstance(none, PolicyOptions)
    assert (few.printed, few.name, none.printed) == (("rate", "window"), "doral(printed=window+rate)", ())
    with pytest.raises(InvalidValue, match="^printed = 'rat':.* acceptance"):
        parse_policy("doral:printed=window+rat")
    assert parse_policy("d-alp").name == "d-alp"


@pytest.mark.parametrize("option", OPTION_NAMES)
def test_every_option_can_be_given_in_words(option: str) -> None:
    default = getattr(parse_policy("doral"), option)
    word = "none" if default == () else default
    assert getattr(parse_policy(f"doral:{option}={word}"), option) == default


@pytest.mark.parametrize(
    ("word", "cutoff"), [("none", "none"), ("None", None), ("adaptive", "adaptive"), ("7.5", 7.5), ("30", 30.0)]
)
def test_a_cutoff_in_words(word: str, cutoff: object) -> None:
    """No limit, and no choice of one, are not the same."""
    one = parse_policy(f"doral:cutoff={word}")
    assert isinstance(one, PolicyOptions)
    assert one.cutoff == cutoff


@pytest.mark.parametrize("word", ["doral:", "doral:accept", "doral:=3", "doral:accept=3,", "doral:accept=1,accept=2"])
def test_malformed_policy_words_are_refused(word: str) -> None:
    with pytest.raises((InvalidValue, UnknownName)):
        parse_policy(word)


SIMULATE = [*COMMAND, "simulate", "paper/diverse-pareto", "--policy", "random", "--runs", "1", "--jobs", "1"]


def on_a_terminal(variables: dict[str, str], until: str) -> str:
    """What `SIMULATE` tells somebody who looks at its errors, until they have seen what they look for, or its end."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(SIMULATE, env=variables, stdout=subprocess.DEVNULL, stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while until.encode() not in seen:
            try:
                seen += os.read(ours, 1024)
            except OSError:  # the other side is closed
                break
    finally:
        process.kill()
        process.wait()
        os.close(ours)
    return seen.decode()


def test_compiling_is_announced_on_a_terminal(tmp_path: Path) -> None:
    said = on_a_terminal({**environment(), "DORAL_CACHE_DIR": str(tmp_path)}, until="\n")
    assert re.search(  # on a busy machine, after a line about progress
        r"\bdoral: compiling the simulator for this machine, once: about \d+ s\r?\n$",
        said,
    )


def test_nothing_is_announced_where_nothing_is_compiled_or_nobody_looks() -> None:
    """With the cache of the tests: whoever comes first compiles, and without a terminal nobody is told."""
    done = subprocess.run(SIMULATE, env=environment(), capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert "compiling" not in on_a_terminal(environment(), until="no such words")


def test_a_counted_stage_is_no_new_line_for_each_count() -> None:
    from io import StringIO

    from rich.console import Console

    from doral.cli.terminal import Progress

    written = StringIO()
    with Progress(console=Console(file=written, width=80, highlight=False, markup=False)) as progress:
        for done in range(1, 101):
            progress(done / 100.0, f"posterior draw {done} of 100")
    assert 5 <= len(written.getvalue().splitlines()) <= 12
