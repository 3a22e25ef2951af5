"""`doral serve`, as far as it is the command's own: what is wrong is one line, before anything listens."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import doral
from doral.cli.app import app
from tests.cli.processes import environment

WITHOUT_EXTRA = """
import sys
sys.modules["fastapi"] = None
sys.argv = ["doral", "serve", "--storage", "sqlite:///none.db"]
import doral.cli
doral.cli.main()
"""


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--log-format", "xml"], "--log-format 'xml':"),
        (["--public-url", "ftp://x"], "--public-url 'ftp://x':"),
        (["--storage", "memory://"], "--storage 'memory://':"),
        (["--storage", "mysql://x"], "--storage 'mysql://...':"),
        (
            ["--webhook", "https://example.org/hook"],
            "--webhook-secret-file",
        ),
        (["--webhook-secret-file", "secret"], "--webhook"),
        (["--demo", "--host", "0.0.0.0"], "--host '0.0.0.0':"),
        (["--demo", "--public-url", "https://example.org"], "--public-url"),
        (["--rate", "inf"], "--rate inf:"),
        (["--stop-within", "inf"], "--stop-within inf:"),
        (["--watch-every", "inf"], "--watch-every inf:"),
        (["--host", "0.0.0.0"], "give --tls-cert and --tls-key; or --allow-plain-http"),
        (["--tls-cert", "cert.pem"], "--tls-key"),
    ],
)
def test_what_is_wrong_is_one_line(
    words: list[str], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("DORAL_WEBHOOK_SECRET", raising=False)
    done = CliRunner().invoke(app, ["serve", "--port", "0", *words])
    assert done.exit_code == 2
    assert said in done.output
    assert done.output.count("\n") == 1
    assert "Traceback" not in done.output


@pytest.mark.parametrize("words", [["--port", "70000"], ["--rate", "-1"], ["--max-batch", "0"], ["--max-body", "no"]])
def test_values_that_no_option_takes(words: list[str]) -> None:
    done = CliRunner().invoke(app, ["serve", "--port", "0", *words])
    assert done.exit_code == 2
    assert f"Invalid value for '{words[0]}'" in done.output


def test_a_secret_that_cannot_be_read(tmp_path: Path) -> None:
    words = ["serve", "--webhook", "https://example.org", "--webhook-secret-file", str(tmp_path / "none")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    assert done.output == f"doral: No such file or directory: {tmp_path / 'none'}\n"


def test_a_demonstration_does_not_feed_somebodys_own_campaigns(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'mine.db'}"
    with doral.open(url) as store:
        store.create("mine", doral.Problem(arms=["a"], contexts=["c"], budget=10, horizon=10, deadline=60))
    done = CliRunner().invoke(app, ["serve", "--demo", "--storage", url])
    assert (done.exit_code, done.output.count("\n")) == (2, 1)
    assert "'mine': is not of the demonstration" in done.output


def test_without_its_extra_it_says_what_to_install(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_EXTRA],
        cwd=tmp_path,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert done.stderr == "doral: doral serve needs more than the library: pip install 'doral[serve]'\n"
    assert not list(tmp_path.iterdir())


def test_every_option_is_described() -> None:
    done = CliRunner().invoke(app, ["serve", "--help"], env={"COLUMNS": "200"})
    assert done.exit_code == 0
    for option in ("--storage", "--tls-key", "--rate", "--expire-every", "--stop-within", "--log-format", "--demo"):
        line = next(one for one in done.output.splitlines() if option in one)
        assert len(line.split("  ")[-1]) > 20, line


def test_a_secret_that_can_be_guessed_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DORAL_WEBHOOK_SECRET", "apple")
    done = CliRunner().invoke(app, ["serve", "--port", "0", "--webhook", "https://example.org/hook"])
    assert done.exit_code == 2
    assert "16" in done.output
    assert "apple" not in done.output
