"""`docs/howto/deploy.md`, followed in an empty folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.service.test_balanced import free_port, pytestmark

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "howto" / "deploy.md").read_text()
__all__ = ["pytestmark"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path


def test_the_page_is_followed_in_an_empty_folder(postgres: str, folder: Path) -> None:
    script = "\n".join(re.findall(r"(?m)^```sh\n(.*?)^```$", PAGE, re.DOTALL))
    deploy = folder / "deploy"
    shutil.copytree(ROOT / "deploy", deploy)
    for usual in ("8080", "8787", "8788"):  # which others may listen on here
        here = str(free_port())
        script = script.replace(usual, here)
        upstream = deploy / "nginx" / "upstream.conf"
        upstream.write_text(upstream.read_text().replace(usual, here))
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}:/usr/sbin",
        "HOME": str(folder),
        "DORAL_STORAGE": postgres,
        "DORAL_CACHE_DIR": os.environ.get("DORAL_CACHE_DIR", str(Path.home() / ".cache" / "doral")),
        "DEPLOY": str(deploy),
        "PYTHONPATH": str(ROOT / "src"),
    }
    empty = folder / "empty"
    empty.mkdir()
    done = subprocess.run(
        ["bash", "-eu", "-c", script], cwd=empty, env=environment, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "arrivals: 2" in done.stdout
