"""A service that is killed while clients use it: `benchmarks/service_faults.py` for some seconds.

`make bench` does it for a minute, on SQLite and on PostgreSQL with two replicas.
"""

from __future__ import annotations

from pathlib import Path

from tests.programs import loaded

_FOLDER = Path(__file__).parents[2] / "benchmarks"

loaded(_FOLDER / "_service_process.py")  # which the other imports by this name
faults = loaded(_FOLDER / "service_faults.py")


def test_what_was_acknowledged_is_there_once_whenever_the_service_is_killed(tmp_path: Path) -> None:
    killing = faults.Killing(seconds=2.0, kills=2, lives_s=(0.2, 1.0), requests=30)
    found = faults.run(f"sqlite:///{tmp_path / 'campaigns.db'}", killing, seed=3)
    assert found.kills >= 2
    assert found.requests >= 60
    assert found.retries > 0
    assert found.answers > 0


def test_the_same_with_two_replicas() -> None:
    killing = faults.Killing(seconds=3.0, kills=2, lives_s=(0.5, 1.5), requests=60)
    with faults.postgres() as url:
        found = faults.run(url, killing, replicas=2, seed=4)
        assert found.kills >= 2
        assert found.requests >= 60
