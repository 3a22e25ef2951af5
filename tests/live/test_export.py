"""Exported files: for their owner alone, harmless in a spreadsheet, and with every name as it was."""

from __future__ import annotations

import csv
import json
import stat
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from doral.live.errors import StorageError
from doral.live.views.decision import Decision
from doral.live.views.export import read_decisions, write_decisions

DANGEROUS = "=+-@\t\r\uff1d\uff0b\uff0d\uff20"

names = st.text(
    st.one_of(
        st.sampled_from("=+-@\uff1d\uff0b\uff0d\uff20'\"\u2018\u201c|,;[] \u00a0\u3000\u200b\ufeff{}\\"),
        st.characters(exclude_categories=["Cc", "Cs"]),
    ),
    min_size=1,
    max_size=12,
).filter(lambda text: text.strip() != "")


def decision(name: str, available: tuple[str, ...] | None, number: int = 1, reward: float | None = -0.5) -> Decision:
    return Decision(
        id=f"{number:08x}-1",
        state="returned",
        context=name,
        arm=name,
        cost=1.0,
        value=-0.25,
        price=0.1,
        probability=1 / 3,
        reason_code="best " + name,
        round=number,
        decided_at=-1e9,
        key=name,
        reward=reward,
        answered_at=1.5,
        actual_cost=0.1,
        available=available,
    )


@given(given_names=st.lists(names, min_size=1, max_size=5))
@example(
    given_names=["=cmd|' /C calc'!A1", "'=1", "''=1", "'quoted'", " =1", "\uff1d1", "a|b", 'a","b', "a,b", "[]", "null"]
)
def test_names_come_back_and_are_not_run(given_names: list[str]) -> None:
    made = [decision(name, tuple(given_names), i) for i, name in enumerate(given_names)]
    made += [decision(given_names[0], None, reward=None), decision(given_names[0], ())]
    with TemporaryDirectory() as folder:
        paths = [Path(folder, "d.csv"), Path(folder, "d.parquet")]
        assert [write_decisions(path, made) for path in paths] == [len(made)] * 2
        for path in paths:
            rows = read_decisions(path).to_dicts()
            assert rows == [
                {name: list(value) if isinstance(value := getattr(one, name), tuple) else value for name in rows[0]}
                for one in made
            ]
        with paths[0].open(newline="", encoding="utf-8") as file:
            for one, row in zip(made, csv.DictReader(file), strict=True):
                for column in ("id", "context", "arm", "reason", "state", "key", "available"):
                    assert row[column][:1] == "" or row[column][0] not in DANGEROUS
                    assert row[column].lstrip('\ufeff\u200b \u00a0\u3000"\u2018\u201c')[:1] not in tuple(DANGEROUS)
                assert row["context"] in (one.context, "'" + one.context)
                assert (json.loads(row["available"]) if row["available"] else None) == (
                    None if one.available is None else list(one.available)
                )
                assert float(row["value"]) == -0.25  # numbers stay numbers


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    for name in ("d.csv", "d.parquet"):
        path = tmp_path / name
        write_decisions(path, [decision("a", None)])
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        path.chmod(0o640)
        write_decisions(path, [])
        assert stat.S_IMODE(path.stat().st_mode) == 0o640
        assert read_decisions(path).height == 0


def test_whole_or_not_at_all(tmp_path: Path) -> None:
    def breaks() -> object:
        yield decision("a", None)
        raise StorageError("the disk is gone")

    for name in ("d.csv", "d.parquet"):
        (tmp_path / name).write_text("old")
        with pytest.raises(StorageError, match="the disk is gone"):
            write_decisions(tmp_path / name, breaks())  # type: ignore[arg-type]
        assert (tmp_path / name).read_text() == "old"
    assert len(list(tmp_path.iterdir())) == 2


FULL = """
import resource, signal, sys
from pathlib import Path
from doral.live.errors import StorageError
from doral.live.views.export import write_decisions
from tests.live.test_export import decision

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
try:
    write_decisions(Path(sys.argv[1]), (decision(f"{i * 7919 % 100_003}", None, i) for i in range(40_000)))
except StorageError as error:
    print(error)
"""


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_a_full_disk(suffix: str, tmp_path: Path) -> None:
    (tmp_path / f"d.{suffix}").write_text("old")
    said = run(FULL, tmp_path / f"d.{suffix}")
    assert f"d.{suffix}'" in said
    assert "File too large" in said
    assert "nothing was written" in said
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def run(program: str, path: Path) -> str:
    root = Path(__file__).parent.parent.parent
    environment = {"PYTHONPATH": f"{root / 'src'}:{root}", "POLARS_MAX_THREADS": "2"}
    return subprocess.run(
        [sys.executable, "-c", program, str(path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout


MEMORY = """
import resource, sys
from pathlib import Path
from doral.live.views.export import write_decisions
from tests.live.test_export import decision
import polars

def peak_mib():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024

def some(count):
    one = decision("a name of some length", ("a", "b"))
    return (one for _ in range(count))

write_decisions(Path(sys.argv[1]), some(40_000))
before = peak_mib()
write_decisions(Path(sys.argv[1]), some(200_000))
print(peak_mib() - before)
"""


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_memory_does_not_grow_with_decisions(suffix: str, tmp_path: Path) -> None:
    assert float(run(MEMORY, tmp_path / f"d.{suffix}")) < 30  # MiB; all at once it would be some 60
