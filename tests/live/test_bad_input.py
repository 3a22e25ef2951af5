"""Whatever is given as whatever argument: it works, or an error of ours names the argument and nothing changes.

Methods and their arguments are found by looking at the classes, so that new ones are tested, too.
"""

from __future__ import annotations

import inspect
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from itertools import repeat
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import doral
from doral.engine.options import OPTION_NAMES
from doral.errors import DoralError, InvalidValue, UnknownName, shown
from doral.live.campaign import Campaign
from doral.live.errors import StorageError
from doral.live.store import Store
from tests.live import people
from tests.live.checks import log_is_whole
from tests.live.test_campaign import everything, problem
from tests.small_worlds import make_scenario


class Text(str):
    __slots__ = ()


class Rude:
    """An object that raises whatever it is asked."""

    def __repr__(self) -> str:
        raise RuntimeError("no")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("no")

    def __hash__(self) -> int:
        raise RuntimeError("no")

    def __iter__(self) -> Iterator[object]:
        raise RuntimeError("no")


def breaks() -> Iterator[Any]:
    yield "old"
    raise ZeroDivisionError("in the middle")


JUNK: tuple[Any, ...] = (
    None, 5, -1, 1.5, float("nan"), float("inf"), 5e-324, 1e308, 10**400, 10**5000, 2**63, True,
    "", " ", "x\0y", "\ud800", "\udc80", "x" * 100_000, Text("a"), Text("x"), b"x", bytearray(b"x"),
    [], {}, (), [None], [[1]], {"a": 1}, {1: 2}, {Rude: 1}, [("a",)], [{}], ["old", None], {"context": []},
    [{"context": {}}], [{"context": "old", 5: 5}], [{"context": "old", "available": 5}],
    [{"context": "old", "at": "-"}], [{"decision_id": "x", "reward": None}], [{"decision_id": [], "reward": 1}],
    [("x", "y")], [(None, 1.0)],
    [{"context": "old", "arm": [], "at": 1}], [{"context": "old", "arm": "a", "at": {}}], [{"context": "old"}],
    [{"context": "old", "arm": "a", "at": 1, "reward": "x"}], [{"context": "old", "arm": "a", "at": 1, "spend": 5}],
    [{"context": "old", "arm": "a", "at": 1, "answered_at": 0.5, "reward": 1}],
    object(), object, len, Rude(), Ellipsis, 1j, Decimal("1.5"), Decimal("nan"), Fraction(1, 3), range(3), slice(3),
    np.float64(1.5), np.int64(3), np.bool_(True), np.float64("nan"), np.str_("old"), np.datetime64("2026-01-01"),
    np.array(5.0), np.array([1, 2]), np.array(["a", "b"]), np.array([["a"]]), np.array([object()]),
    datetime(2026, 1, 1), datetime(2026, 1, 1, tzinfo=UTC), datetime.min.replace(tzinfo=UTC),
    Path("x\0y"), Path("x"), Path(), Path("no/such/folder.csv"), Path("ok.parquet"), "\ud800.csv", "x\0.csv",
)  # fmt: skip


def junk() -> list[Any]:
    """Generators, too, which can be read once."""
    return [*JUNK, iter(["old"]), breaks(), repeat("old"), repeat(None)]


def valid(method: str, name: str, folder: Path, campaign: Campaign) -> Any:
    """What could be given: a new argument needs a line here."""
    found: dict[str, Callable[[], Any]] = {
        "url": lambda: "memory://",
        "name": lambda: "kits" if method == "campaign" else "a",
        "problem": problem,
        "policy": lambda: "d-linucb",
        "clock": lambda: "rounds",
        "context": lambda: "old",
        "available": lambda: ["a", "b"],
        "arrivals": lambda: ["old"],
        "answers": list,
        "key": lambda: "used",
        "decision_id": lambda: pending(method, campaign),
        "reward": lambda: 0.5,
        "arm": lambda: "a" if method == "record" else doral.Arm("new", features=[1.0, 2.0]),
        "at": lambda: 1.0,
        "records": list,
        "amount": lambda: 1.0,
        "rounds": lambda: 1,
        "path": lambda: path_for(method, folder),
        "old": lambda: folder / "old.parquet",
        "new": lambda: folder / "new.parquet",
    }
    return found[name]()


def path_for(method: str, folder: Path) -> Path:
    """A file that is not there yet, or what can be restored."""
    if method == "export":
        return folder / "out.csv"
    path = folder / f"out-{len(list(folder.iterdir()))}.parquet"
    if method == "restore":
        made = folder / "made.parquet"
        if not made.exists():
            with doral.open("memory://") as store:
                store.create("a", problem())
                store.backup(made)
        shutil.copyfile(made, path)
    return path


def pending(method: str, campaign: Campaign) -> str:
    """A decision about which this can be said."""
    made = campaign.decide("old")
    return (campaign.feedback(made.id, 1.0) if method == "correct" else made).id


def arguments(function: Callable[..., Any]) -> list[inspect.Parameter]:
    return [
        one
        for one in inspect.signature(function).parameters.values()
        if one.name.strip("_") == one.name and one.name != "self"
    ]


def methods(cls: type) -> list[str]:
    return [name for name, one in vars(cls).items() if inspect.isfunction(one) and not name.startswith("_")]


CASES = [
    (cls, name, one.name) for cls in (Campaign, Store) for name in methods(cls) for one in arguments(getattr(cls, name))
]
# What errors call an argument where it is not its own name.
ALSO_CALLED = {
    "name": ("arm", "campaign", "policy", "scenario"),
    "available": ("arm",),
    "arms": ("arm",),
    "contexts": ("context",),
    "reserves": ("reserve",),
    "policies": ("policy",),
    "arrivals": ("arrival", "context", "available", "at"),
    "answers": ("answer", "decision_id", "reward"),
    "records": ("record", "context", "arm", "at", "reward", "answered_at", "spend"),
    "policy": ("cutoff",),
    "names": ("name", "campaign"),
    "person": ("feature",),
    "features": ("feature",),
    "key": ("to",),  # a clock that needs no repair
    "request_key": ("key",),
}


def tried(call: Callable[[], Any], field: str) -> bool:
    """Whether it worked; if not, the error is one of ours and names the argument."""
    try:
        found = call()
        if isinstance(found, Iterator):
            list(found)
    except DoralError as error:
        said = str(error)
        assert any(word in said for word in (field, *ALSO_CALLED.get(field, ()))), said
        assert len(said) < 1_000
        assert "\0" not in said
        said.encode()
        return False
    return True


@pytest.mark.parametrize(("cls", "method", "field"), CASES, ids=lambda one: getattr(one, "__name__", one))
def test_every_argument_of_every_method(
    cls: type, method: str, field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with doral.open("memory://") as store:
        give_junk(store, cls, method, field, tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("cls", "method", "field"),
    [
        (Campaign, "decide", "key"),
        (Campaign, "feedback", "reward"),
        (Campaign, "decide", "at"),
        (Store, "create", "name"),
    ],
    ids=lambda one: getattr(one, "__name__", one),
)
def test_what_databases_keep(
    cls: type, method: str, field: str, durable_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with doral.open(durable_url) as store:
        give_junk(store, cls, method, field, tmp_path, monkeypatch)


def give_junk(
    store: Store, cls: type, method: str, field: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    campaign = store.create("kits", problem(budget=1e6), policy="d-linucb", seed=1, clock="rounds")
    campaign.decide_many(["old", {"context": "young", "key": "used"}])
    target = campaign if cls is Campaign else store
    raw: list[str] = []
    before: Any = None  # not known
    for value in junk():
        given = {
            one.name: valid(method, one.name, tmp_path, campaign)
            for one in arguments(getattr(cls, method))
            if (one.default is one.empty or one.name == "context") and one.name != field
        }
        if method == "create" and field != "name":
            given["name"] = f"kits {len(store.list())}"
        if before is None or "decision_id" in given:  # for which a decision was made
            before = everything(campaign), store.list()
        try:
            is_done = tried(lambda: getattr(target, method)(**given, **{field: value}), field)  # noqa: B023
        except Exception as error:  # noqa: BLE001
            raw.append(f"{shown(value)}: {type(error).__name__}: {error}")
            is_done = False
        if is_done:
            before = None
        else:
            assert (everything(campaign), store.list()) == before, shown(value)
    assert "\n".join(raw) == ""


@pytest.mark.parametrize("field", ["context", "features", "weight", "deadline", "available"])
@pytest.mark.parametrize("method", ["decide", "record"])
def test_every_argument_about_a_person(method: str, field: str) -> None:
    if (method, field) == ("record", "available"):
        return
    with doral.open("memory://") as store:
        campaign = people.make(store, problem=people.make_problem(contexts=["old", "young"], missing="mean"))
        needed: dict[str, Any] = {"context": "old", "features": {"age": 5}}
        needed |= {"arm": "a0", "at": 1.0} if method == "record" else {}
        raw = []
        for value in junk():
            before = everything(campaign)
            try:
                is_done = tried(lambda: getattr(campaign, method)(**{**needed, field: value}), field)  # noqa: B023
            except Exception as error:  # noqa: BLE001
                raw.append(f"{shown(value)}: {type(error).__name__}: {error}")
                is_done = False
            assert is_done or everything(campaign) == before, shown(value)
        assert "\n".join(raw) == ""
        log_is_whole(campaign)


def test_what_is_said(tmp_path: Path) -> None:
    with doral.open("memory://") as store:
        campaign: Any = store.create("kits", problem(), clock="rounds")
        said: list[tuple[Callable[[], Any], type[DoralError], str]] = [
            (
                lambda: campaign.decide("old", available=5),
                InvalidValue,
                "available = 5: must be a list of names of arms",
            ),
            (lambda: campaign.decide("old", available={"a": False}), InvalidValue, "available = {'a': False}: must be"),
            (lambda: campaign.decide_many(None), InvalidValue, "arrivals = None: must be a list"),
            (lambda: campaign.decide_many(repeat("old")), InvalidValue, "number of arrivals = 'more than 100,000'"),
            (lambda: campaign.decide_many(breaks()), InvalidValue, "ZeroDivisionError: in the middle"),
            (lambda: campaign.feedback_many([None]), InvalidValue, "answer = None: must be a mapping"),
            (lambda: campaign.expire(now="soon"), InvalidValue, "now = 'soon': must be a finite number"),
            (lambda: campaign.export(None), InvalidValue, "path = None: must be a string or a Path"),
            (lambda: campaign.export("a\0.csv"), InvalidValue, "path = "),
            (
                lambda: campaign.export(tmp_path / "no" / "d.csv"),
                StorageError,
                "No such file or directory; nothing was",
            ),
            (lambda: store.campaign(None), InvalidValue, "name of a campaign = None: must be"),  # type: ignore[arg-type]
            (lambda: store.campaign("kit"), UnknownName, "did you mean 'kits'?"),
        ]
        for call, kind, words in said:
            with pytest.raises(kind) as caught:
                call()
            assert words in str(caught.value)
        assert campaign.report().arrivals == 0


def test_every_url() -> None:
    raw = []
    for value in junk():
        try:
            if tried(lambda: doral.open(value), "url"):  # noqa: B023
                raw.append(f"{shown(value)} was opened")
        except Exception as error:  # noqa: BLE001
            raw.append(f"{shown(value)}: {type(error).__name__}: {error}")
    assert "\n".join(raw) == ""


MAKERS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "Arm": (doral.Arm, {"name": "a", "features": [1.0]}),
    "Context": (doral.Context, {"name": "a"}),
    "Problem": (
        doral.Problem,
        {"arms": [doral.Arm("a", features=[1.0])], "contexts": ["x"], "budget": 1.0, "horizon": 10},
    ),
    "open": (doral.open, {"url": "memory://"}),
    "scenario": (doral.scenario, {"name": "paper/similar-geometric"}),
    "policy": (doral.policy, {"name": "doral"}),
    "simulate": (
        doral.simulate,
        {"policies": "random", "scenario": make_scenario(horizon=20), "runs": 1},
    ),
}


def maker_cases() -> list[tuple[str, str]]:
    found = [(maker, one) for maker, (call, _) in MAKERS.items() for one in inspect.signature(call).parameters]
    return [case for case in found if case[1] != "options"] + [("policy", option) for option in OPTION_NAMES]


@pytest.mark.parametrize(("maker", "field"), maker_cases())
def test_every_argument_of_what_is_asked(maker: str, field: str) -> None:
    call, given = MAKERS[maker]
    raw = []
    for value in junk():
        if maker == "simulate" and (callable(value) or isinstance(value, repeat)):
            continue  # what is called may raise what it likes, and a list of policies may be endless
        arguments = {**given, field: value}
        first = [arguments.pop("name")] if "name" in arguments else []
        try:
            tried(lambda: call(*first, **arguments), field)  # noqa: B023
        except Exception as error:  # noqa: BLE001
            raw.append(f"{shown(value)}: {type(error).__name__}: {str(error)[:200]}")
    assert "\n".join(raw) == ""
