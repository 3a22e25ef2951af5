from __future__ import annotations

import ctypes
import math
import platform
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from doral.compiled import Block, Entry, Program, kernel, machine, store
from doral.compiled import program as program_module
from doral.compiled.interpret import Interpreter
from doral.compiled.program import as_python
from doral.compiled.translate import Unsupported
from tests.compiled import tiny
from tests.compiled.tiny import Tree, Twin, new_program, new_tree, sum_up, walk


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(store, "cache_folder", lambda: tmp_path)
    monkeypatch.delenv("DORAL_COMPILE", raising=False)
    return tmp_path


def expected(tree: Tree, start: int) -> float:
    return float(0.5 * sum(row.max() - row.min() for row in tree.part.table[start:])) + 7


@pytest.fixture(autouse=True)
def unwarned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program_module, "_has_warned", False)


@pytest.mark.parametrize("way", ["lean", "plain"])
def test_both_ways_give_the_same(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DORAL_COMPILE", way)
    program, tree = new_program(), new_tree()
    block = Block(tree)
    assert program["walk"](block, 1) == expected(tree, 1)
    assert tree.now[0].item() == (expected(tree, 1) - 7, 2, 14)
    assert program["set_on"](block, 2.5, 2**63 + 1) == 1
    assert program["set_on"](block, 2.5, 1) == 0
    assert tree.now["total"][0] == 2.5


@pytest.mark.parametrize(("way", "is_known"), [("", True), (" PLAIN ", True), ("fast", False)])
def test_a_way_that_is_not_known_is_ignored(way: str, is_known: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DORAL_COMPILE", way)
    program = new_program()
    with nullcontext() if is_known else pytest.warns(RuntimeWarning, match="DORAL_COMPILE=fast is ignored"):
        assert program["walk"](Block(new_tree()), 0) == expected(new_tree(), 0)
        assert program.is_interpreted == ("plain" in way.lower())


def test_a_kernel_can_be_called_from_python() -> None:
    tree = new_tree()
    assert walk(as_python(tree), 0) == expected(tree, 0)
    assert tiny.width(as_python(tree), tiny.Extent(1.0, 4.0)) == 1.5
    tiny.count(as_python(tree), 3.0)
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
    with pytest.raises(ctypes.ArgumentError, match="expected LP_Tree instance instead of pointer to Twin"):
        program["walk"](Block(new_tree(Twin)), 0)
    block = Block(new_tree())
    with pytest.raises(TypeError, match="keeps the type"):
        block.tree = new_tree(Twin)
    with pytest.raises(TypeError, match="keeps the type"):
        block.tree = new_tree()._replace(seed=1)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="row order"):
        Block(tiny.Part(np.zeros((4, 4)).T[:2], 1))
    with pytest.raises(TypeError, match="not str"):
        Block(tiny.Part(np.zeros((4, 4)), "one"))  # type: ignore[arg-type]


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


def test_programs_do_not_share_code(cache: Path) -> None:
    assert new_program().key != new_program(sum_up).key
    assert new_program()["walk"](Block(new_tree()), 0) == expected(new_tree(), 0)
    assert new_program(sum_up)["walk"](Block(new_tree()), 0) == 100.0
    assert len(list(cache.glob("tiny-*.code"))) == 2


@pytest.mark.parametrize("error", [RuntimeError, ImportError, Unsupported, AttributeError, OSError, KeyError])
@pytest.mark.parametrize(
    "place", ["machine.check_once", "translate.translate", "machine.to_object", "machine.Loaded", "machine.HOST"]
)
def test_any_failure_leads_to_python(place: str, error: type[Exception], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: Any) -> None:
        raise error("broken")

    monkeypatch.setattr(f"doral.compiled.{place}", property(fail) if place.endswith("HOST") else fail)
    broken = new_program()
    with pytest.warns(RuntimeWarning, match="runs as Python.*could not be compiled") as warned:
        assert broken["walk"](Block(new_tree()), 0) == expected(new_tree(), 0)
    if place != "machine.HOST":
        assert f"{error.__name__}: " in str(warned[0].message)
        assert "broken" in str(warned[0].message)
    assert broken.is_interpreted
    assert broken.is_at_hand
    assert new_program()["walk"](Block(new_tree()), 0) == expected(new_tree(), 0)  # without another warning
    monkeypatch.setenv("DORAL_COMPILE", "lean")
    with pytest.raises(AttributeError if place == "machine.HOST" else error):
        new_program()["walk"]


def test_without_llvmlite_all_runs_as_python(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("llvmlite", "llvmlite.binding", "doral.compiled.machine"):
        monkeypatch.setitem(sys.modules, name, None)
    program = new_program()
    assert program.is_at_hand  # a campaign does not wait for code that cannot be had
    assert program_module.processor() == platform.machine()  # a campaign names it
    with pytest.warns(RuntimeWarning, match="ModuleNotFoundError"):
        assert program["walk"](Block(new_tree()), 0) == expected(new_tree(), 0)


def test_a_wrong_self_test_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    machine.check_once.__wrapped__()
    monkeypatch.setattr(machine, "_scaled", machine._count)
    with pytest.raises(Exception, match="none|self-test"):
        machine.check_once.__wrapped__()


def test_an_entry_returns_a_number() -> None:
    @kernel
    def pair(tree: Tree) -> tiny.Extent:
        return tiny.Extent(tree.scale, tree.scale)

    program = Program(name="pair", entries={"pair": Entry(pair, (new_tree(),))})
    with pytest.warns(RuntimeWarning, match="not a number"):
        program["pair"]


def test_code_of_a_wheel_is_loaded_if_it_fits(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "PREPARED", tmp_path / "prepared")
    path = store.prepare(new_program())
    with monkeypatch.context() as patch:
        patch.setattr(store, "compile_program", refuse)
        assert new_program()["walk"](Block(new_tree()), 0) == expected(new_tree(), 0)
        assert list(cache.glob("*.code")) == []
        patch.setattr("doral.compiled.machine.runs_baseline", lambda: False)  # another processor
        with pytest.warns(RuntimeWarning, match="compiled again"):
            new_program()["walk"]
    path.write_bytes(b"damaged")
    assert new_program()["walk"](Block(new_tree()), 0) == expected(new_tree(), 0)
    assert len(list(cache.glob("*.code"))) == 1


ONE_OF_MANY = """
import sys
from doral.compiled import Block
from tests.compiled.tiny import new_program, new_tree
print(new_program()["walk"](Block(new_tree()), 0))
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
    assert said == [f"{value}"] * 3


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
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal)
    if is_notebook:
        monkeypatch.setitem(sys.modules, "ipykernel", sys)
    store.announce_compiling("doral-otf", seconds)
    wanted = "doral: compiling doral-otf for this machine, once: about 10 s\n" if is_told else ""
    assert capsys.readouterr().err == wanted
    store.announce_waiting("doral-otf")
    is_heard = is_terminal or is_notebook
    wanted = "doral: waiting for another process that compiles doral-otf\n" if is_heard else ""
    assert capsys.readouterr().err == wanted


def test_a_mistake_in_a_kernel_is_named() -> None:
    @kernel
    def wrong(tree: Tree, i: int) -> float:
        return tree.no_such_field + i  # type: ignore[attr-defined]

    program = Program(name="wrong", entries={"wrong": Entry(wrong, (new_tree(), int), float)})
    with (
        pytest.warns(RuntimeWarning, match="no_such_field.*wrong"),
        pytest.raises(AttributeError, match="no_such_field"),
    ):
        program["wrong"](Block(new_tree()), 0)


@kernel
def beyond_their_domains(tree: Tree, x: float, i: int) -> float:
    """Every operation that Python refuses; returns a digest of what they give."""
    total = tree.now[0].total
    total += 1.0 if math.isinf(1.0 / x) else 0.0
    ratio = 3.0
    ratio /= x
    total += 2.0 if math.isinf(ratio) else 0.0
    total += 4.0 if math.isnan(x / x) else 0.0
    total += 8.0 if math.log(x) == -math.inf else 0.0
    total += 16.0 if math.isnan(math.sqrt(x - 1.0)) else 0.0
    total += 32.0 if math.exp(1000.0 + x) == math.inf else 0.0
    total += 64.0 if 7 // i == 0 and 7 % i == 0 else 0.0
    total += 128.0 if (2.0 + x) ** 5000.0 == math.inf and math.isinf(x**-0.5) else 0.0
    tree.now[0].total = total
    tree.now[0].total /= 1.0 - x
    return total


@pytest.mark.parametrize("way", ["lean", "plain"])
def test_python_gives_what_machine_code_gives_where_python_raises(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DORAL_COMPILE", way)
    program = Program(name="beyond", entries={"beyond": Entry(beyond_their_domains, (new_tree(), float, int), float)})
    tree = new_tree()
    assert program["beyond"](Block(tree), 0.0, 0) == 255.0
    assert tree.now["total"][0] == 255.0


def test_an_interpreted_call_that_python_refuses_is_undone_and_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Interpreter, "is_over", False)

    @kernel
    def refused(tree: Tree, x: float) -> float:
        tree.now[0].calls += 1
        return 1.0 / x + tree.now[0].calls

    program = Program(name="refused", entries={"refused": Entry(refused, (new_tree(), float), float)})
    tree = new_tree()
    assert Interpreter(program, "")["refused"](Block(tree), 0.0) == math.inf
    assert tree.now["calls"][0] == 1
