from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core.errors import NumbaError

from doral.compiled import Block, Entry, Program, kernel, store
from doral.compiled.prepared import prepare
from tests.compiled import tiny
from tests.compiled.tiny import High, Shapeless, Tree, Wide, new_program, new_tree, walk


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store, "cache_folder", lambda: tmp_path)
    monkeypatch.delenv("DORAL_COMPILE", raising=False)
    return tmp_path


def expected(tree: Tree, start: int) -> float:
    spans = [row.max() - row.min() for row in tree.part.table[start:]]
    tops = [row.max() for row in tree.part.table[start:]]
    return float(sum(tops) if isinstance(tree, High) else 0.5 * sum(spans)) + 7


@pytest.mark.parametrize("way", ["lean", "plain"])
@pytest.mark.parametrize("tree_class", [Wide, High])
def test_both_ways_give_the_same(way: str, tree_class: type[Tree], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DORAL_COMPILE", way)
    program, tree = new_program(tree_class), new_tree(tree_class)
    block = Block(tree)
    assert program["walk"](block, 1) == expected(tree, 1)
    if tree_class is Wide:  # its hook has two kernels, the other one none
        assert tree.now[0].item() == (expected(tree, 1) - 7, 2, 14)
    else:
        assert tree.now[0].item() == (0.0, 0, 0)
    assert program["set_on"](block, 2.5, 2**63 + 1) == 1
    assert program["set_on"](block, 2.5, 1) == 0
    assert tree.now["total"][0] == 2.5


def test_a_kernel_can_be_called_from_python() -> None:
    tree = new_tree()
    assert walk(tree, 0) == expected(tree, 0)
    assert tiny.worth(tree, tiny.Extent(1.0, 4.0)) == 1.5
    tiny.on_row(tree, 3.0)
    assert tree.now["calls"][0] == 4


def test_a_block_follows_its_tree() -> None:
    block, program = Block(new_tree()), new_program()
    larger = new_tree(rows=50)
    block.tree = larger
    assert program["walk"](block, 0) == expected(larger, 0)
    block.tree = larger._replace(scale=2.0, is_on=False)
    assert program["walk"](block, 0) == 7.0


def test_a_tree_of_another_type_is_refused() -> None:
    program = new_program()
    with pytest.raises(ctypes.ArgumentError, match="expected LP_Wide instance instead of pointer to High"):
        program["walk"](Block(new_tree(High)), 0)
    block = Block(new_tree())
    with pytest.raises(TypeError, match="keeps the type"):
        block.tree = new_tree(High)
    with pytest.raises(TypeError, match="keeps the type"):
        block.tree = new_tree()._replace(seed=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="row order"):
        Block(tiny.Part(np.zeros((4, 4)).T[:2], 1))
    with pytest.raises(TypeError, match="not str"):
        Block(tiny.Part(np.zeros((4, 4)), "one"))  # type: ignore[arg-type]


def test_a_slot_must_be_filled() -> None:
    with pytest.raises(TypeError, match="'shapeless' has 0 kernels for slot 'worth', not 1"):
        walk(new_tree(Shapeless), 0)


def test_code_is_compiled_once(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert new_program()["walk"](Block(new_tree()), 0) > 0
    assert len(list(cache.glob("tiny-*.code"))) == 1
    monkeypatch.setattr(store, "compile_program", refuse)
    assert new_program()["walk"](Block(new_tree()), 0) == expected(new_tree(), 0)


def refuse(*_: Any) -> Any:
    raise AssertionError("compiled again")


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_damaged_file_is_compiled_anew(cache: Path, damage: bytes | None) -> None:
    assert new_program()["walk"](Block(new_tree()), 0) > 0
    [path] = cache.glob("tiny-*.code")
    whole = path.read_bytes()
    path.write_bytes(whole[:-1] if damage is None else damage)
    assert new_program()["walk"](Block(new_tree()), 0) == expected(new_tree(), 0)
    assert len(path.read_bytes()) == len(whole)


def test_a_cache_that_cannot_be_written_is_no_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(store, "cache_folder", lambda: tmp_path / "missing")
    assert new_program()["walk"](Block(new_tree()), 0) == expected(new_tree(), 0)


def test_compositions_do_not_share_code(cache: Path) -> None:
    assert new_program(Wide).key != new_program(High).key
    for tree_class in (Wide, High):
        assert new_program(tree_class)["walk"](Block(new_tree(tree_class)), 0) == expected(new_tree(tree_class), 0)
    assert len(list(cache.glob("tiny-*.code"))) == 2


def test_an_unknown_numba_means_the_plain_way(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise RuntimeError("the self-test gave 3")

    monkeypatch.setattr("doral.compiled.self_test.check_once", fail)
    program = new_program()
    with pytest.warns(RuntimeWarning, match="the plain way, which is slower .*the self-test gave 3"):
        assert program["walk"](Block(new_tree()), 0) == expected(new_tree(), 0)
    monkeypatch.setenv("DORAL_COMPILE", "lean")
    with pytest.raises(RuntimeError, match="gave 3"):
        new_program()["walk"]


def test_a_wrong_self_test_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    from doral.compiled import self_test

    self_test.check_once.__wrapped__()
    monkeypatch.setattr(self_test._scaled, "function", lambda tree, value: 0.25 * value)
    with pytest.raises(RuntimeError, match="the self-test of the compile layer gave"):
        self_test.check_once.__wrapped__()


def test_an_entry_returns_a_number() -> None:
    @kernel
    def pair(tree: Tree) -> tiny.Extent:
        return tiny.Extent(tree.scale, tree.scale)

    program = Program(name="pair", entries={"pair": Entry(pair, (new_tree(),))})
    with pytest.warns(RuntimeWarning, match="not a number"):
        program["pair"]


def test_prepared_code_needs_no_front_end(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("doral.compiled.prepared.FOLDER", tmp_path / "prepared")
    path = prepare(new_program())
    monkeypatch.setattr(store, "lower", refuse)
    assert new_program()["walk"](Block(new_tree()), 0) == expected(new_tree(), 0)
    monkeypatch.undo()
    monkeypatch.setattr(store, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr("doral.compiled.prepared.FOLDER", tmp_path / "prepared")
    path.write_bytes(b"damaged")
    for code in tmp_path.glob("*.code"):
        code.unlink()
    assert new_program()["walk"](Block(new_tree()), 0) == expected(new_tree(), 0)


ONE_OF_MANY = """
import sys
from doral.compiled import Block
from tests.compiled.tiny import new_program, new_tree
print(new_program()["walk"](Block(new_tree()), 0), "numba" in sys.modules)
"""


def test_one_process_compiles_and_the_others_wait(tmp_path: Path) -> None:
    root = Path(__file__).parent.parent.parent
    environment = {"PYTHONPATH": f"{root / 'src'}:{root}", "DORAL_CACHE_DIR": str(tmp_path), "DORAL_COMPILE": "lean"}
    started = [
        subprocess.Popen([sys.executable, "-c", ONE_OF_MANY], stdout=subprocess.PIPE, text=True, env=environment)
        for _ in range(3)
    ]
    said = sorted(process.communicate(timeout=120)[0].strip() for process in started)
    value = expected(new_tree(), 0)
    assert said == [f"{value} False", f"{value} False", f"{value} True"]  # loading needs no Numba


@pytest.mark.parametrize(
    ("seconds", "is_terminal", "is_notebook", "is_told"),
    [(10.0, True, False, True), (10.0, False, True, True), (10.0, False, False, False), (0.5, True, True, False)],
)
def test_whoever_waits_is_told(
    seconds: float,
    is_terminal: bool,
    is_notebook: bool,
    is_told: bool,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from doral.compiled.notice import announce_compiling, announce_waiting

    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    if is_notebook:
        monkeypatch.setitem(sys.modules, "ipykernel", sys)
    announce_compiling("doral-otf", seconds, is_prepared=False)
    wanted = "doral: compiling doral-otf for this machine, once: about 10 s\n" if is_told else ""
    assert capsys.readouterr().err == wanted
    announce_compiling("doral-otf", seconds, is_prepared=True)  # LLVM alone
    assert capsys.readouterr().err == wanted.replace("10 s", "4 s")
    announce_waiting("doral-otf")
    is_heard = is_terminal or is_notebook
    wanted = "doral: waiting for another process that compiles doral-otf\n" if is_heard else ""
    assert capsys.readouterr().err == wanted


def test_a_mistake_in_a_kernel_is_an_error_and_no_reason_to_compile_otherwise() -> None:
    @kernel
    def wrong(tree: Tree, i: int) -> float:
        return tree.no_such_field + i  # type: ignore[attr-defined]

    program = Program(name="wrong", entries={"wrong": Entry(wrong, (new_tree(), int), float)})
    with pytest.raises(NumbaError, match="no_such_field"):
        program["wrong"](Block(new_tree()), 0)
