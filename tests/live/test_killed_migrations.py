"""`kill -9` while an old database is brought up to date: afterwards it opens, and says what it said."""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest

import doral
from tests.live.conftest import Zygote
from tests.live.test_kills import KILLS
from tests.live.test_releases import (
    CAMPAIGNS,
    RELEASES,
    copy_into_postgres,
    decisions_now,
    decisions_then,
    said_then,
    unpack,
)

ROUNDS = max(2, KILLS // 4)
LONGEST_LIFE_S = 0.4


@pytest.mark.parametrize("storage", ["sqlite", "postgres"])
def test_killed_migrations(storage: str, zygote: Zygote, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    rng = random.Random(22)
    for number in range(ROUNDS):
        release = RELEASES[number % len(RELEASES)]
        path = tmp_path / f"old-{number}.db"
        unpack(release, path)
        url = f"sqlite:///{path}"
        if storage == "postgres":
            url = str(request.getfixturevalue("postgres_database"))
            copy_into_postgres(path, url)
        for _ in range(3):
            pid = zygote.start("upgrade", url, "none", 0, tmp_path / "none")
            time.sleep(rng.uniform(0.0, LONGEST_LIFE_S))
            zygote.kill(pid)
        expected = said_then(release)
        with doral.open(url) as store:
            assert tuple(store.list()) == CAMPAIGNS
            for name in CAMPAIGNS:
                assert decisions_now(store.campaign(name), expected) == decisions_then(expected, name)
