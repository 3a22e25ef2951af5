"""Which parts are removed, and when."""

from __future__ import annotations

from pathlib import Path

from doral.experiments.kit.batches import part_name, remove_other_parts, remove_parts_of_other_versions

OURS, THEIRS = {"doral": "2", "numpy": "1"}, {"doral": "1", "numpy": "1"}
FOREIGN = ("notes.npz", "README", f"{'a' * 31}.npz", f"{'z' * 32}.npz", f"{'a' * 32}.npz.bak")


def made(folder: Path) -> tuple[Path, list[str], list[str]]:
    parts = folder / "parts"
    parts.mkdir()
    ours = [part_name(sign * 32, versions=OURS) for sign in "ab"]
    others = [part_name("c" * 32, versions=THEIRS), f"{'d' * 32}.npz"]
    for name in (*ours, *others, *FOREIGN):
        (parts / name).write_text("")
    (parts / f"{'e' * 32}.npz").mkdir()
    return parts, ours, others


def left(parts: Path) -> set[str]:
    return {path.name for path in parts.iterdir()} - {f"{'e' * 32}.npz"}


def test_before_a_run_parts_of_other_versions_go(tmp_path: Path) -> None:
    """Those of this version stay, whatever their settings: a run that was interrupted may go on from them."""
    parts, ours, _ = made(tmp_path)
    remove_parts_of_other_versions(tmp_path, versions=OURS)
    assert left(parts) == {*ours, *FOREIGN}
    remove_parts_of_other_versions(tmp_path / "nowhere", versions=OURS)


def test_after_a_run_those_go_that_it_did_not_ask_for(tmp_path: Path) -> None:
    parts, ours, _ = made(tmp_path)
    remove_other_parts(tmp_path, keep=ours[:1])
    assert left(parts) == {ours[0], *FOREIGN}
