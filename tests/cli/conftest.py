from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.campaign_shell import Shell


@pytest.fixture
def doral_(tmp_path: Path) -> Shell:
    return Shell(tmp_path)
