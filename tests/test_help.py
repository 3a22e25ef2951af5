"""What `help()` says: every public name has a docstring, and every parameter is described."""

from __future__ import annotations

import inspect
import json
import re
import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import griffe
import pytest

import doral
from doral.engine.options import (
    OPTION_NAMES,
    POLICY_NAMES,
    PRINTED_READINGS,
    OptionsBesideModel,
    PolicyName,
    PolicyOptions,
    PolicyOptionsDict,
    Printed,
    ReadingName,
    option_words,
    policy_of,
)
from doral.logs.read import ReadOptions
from doral.prediction import external
from doral.simulation.catalogue.lookup import SCENARIOS, STRATA, ScenarioName
from doral.simulation.rivals.rival import RIVALS, RivalName, setting_names

_LISTS = ("parameters", "other parameters", "attributes")


@dataclass(frozen=True)
class Documented:
    """A public name: what it takes, and what is said of it."""

    name: str
    doc: str
    takes: tuple[str, ...]
    may_take: tuple[str, ...] = ()  # which need not be said: it is handed on, or follows

    @property
    def says(self) -> dict[str, str]:
        sections = griffe.Docstring(self.doc).parse("google", warnings=False)
        found: dict[str, str] = {}
        for section in sections:
            if section.kind.value in _LISTS:
                found |= {one.name.lstrip("*"): one.description for one in section.value}
        return found


def _own_doc(thing: Any) -> str:
    return inspect.cleandoc(thing.__doc__ or "")


def _hints(function: Any) -> dict[str, Any]:
    try:
        return typing.get_type_hints(function)
    except NameError:  # a name that is for type checkers alone
        return {}


def _of_function(name: str, function: Callable[..., Any], *, is_method: bool = False) -> Documented:
    takes: list[str] = []
    may_take: list[str] = []
    for one in list(inspect.signature(function).parameters.values())[1 if is_method else 0 :]:
        if one.kind is not inspect.Parameter.VAR_KEYWORD:
            takes.append(one.name)
            continue
        overloads = typing.get_overloads(function)
        keys = {key for each in overloads for key in inspect.signature(each).parameters}
        hint = _hints(function).get(one.name)
        if hint is not None and typing.get_origin(hint) is typing.Unpack:
            keys |= typing.get_type_hints(typing.get_args(hint)[0]).keys()
        if one.name in Documented(name, _own_doc(function), ()).says or not keys:  # told as a whole, or handed on
            takes.append(one.name)
        else:
            takes.extend(sorted(keys - set(takes)))
    return Documented(name, _own_doc(function), tuple(takes), tuple(may_take))


def _of_class(name: str, kind: type[Any]) -> Iterator[Documented]:
    doc = _own_doc(kind)
    takes: tuple[str, ...] = getattr(kind, "_fields", ())
    if inspect.isfunction(kind.__init__) and not getattr(kind, "_is_protocol", False):
        init = _of_function(name, kind.__init__, is_method=True)
        doc = _own_doc(kind.__init__) if "Args:" in (kind.__init__.__doc__ or "") else doc
        takes = tuple(one for one in init.takes if not one.startswith("_"))
    attributes = tuple(one.name for one in fields(kind)) if is_dataclass(kind) else tuple(_annotations(kind))
    yield Documented(name, doc, takes, attributes)
    for member in dir(kind):
        if not member.startswith("_"):
            yield from _of_member(f"{name}.{member}", kind, member)


def _annotations(kind: type[Any]) -> Iterator[str]:
    for one in kind.__mro__:
        yield from vars(one).get("__annotations__", {})


def _of_member(name: str, kind: type[Any], member: str) -> Iterator[Documented]:
    home = next(one for one in kind.__mro__ if member in vars(one))
    if not home.__module__.startswith("doral"):
        return
    found = inspect.getattr_static(kind, member)
    if isinstance(found, property) or hasattr(found, "func"):
        yield Documented(name, _own_doc(found), ())
    elif isinstance(found, classmethod | staticmethod):
        yield _of_function(name, found.__func__, is_method=isinstance(found, classmethod))
    elif inspect.isfunction(found):
        doc = found if found.__doc__ else _inherited(kind, member)
        yield Documented(name, _own_doc(doc), _of_function(name, found, is_method=True).takes)


def _inherited(kind: type[Any], member: str) -> Any:
    """Whoever takes the place of a method that is described need not say it again."""
    return next((vars(one)[member] for one in kind.__mro__ if getattr(vars(one).get(member), "__doc__", None)), None)


def _of(name: str, thing: Any) -> Iterator[Documented]:
    if isinstance(thing, ModuleType):
        yield Documented(name, _own_doc(thing), ())
        for public in thing.__all__:
            yield from _of(f"{name}.{public}", getattr(thing, public))
    elif inspect.isclass(thing):
        yield from _of_class(name, thing)
    elif inspect.isfunction(thing):
        yield _of_function(name, thing)


@cache
def _documented() -> tuple[Documented, ...]:
    names = [name for name in doral.__all__ if not name.startswith("_")]
    return tuple(one for name in names for one in _of(f"doral.{name}", getattr(doral, name)))


def test_everything_public_is_described() -> None:
    faults = []
    for one in _documented():
        if not one.doc:
            faults.append(f"{one.name}: has no docstring")
            continue
        said = one.says
        asked = [each for each in one.takes if not each.startswith("_")]
        faults += [f"{one.name}: {each} is not described" for each in asked if not said.get(each, "").strip()]
        known = {*one.takes, *one.may_take}
        faults += [f"{one.name}: describes {each}, which is not there" for each in said if each not in known]
    assert not faults, "\n" + "\n".join(faults)


def test_the_unit_of_a_deadline_is_said_wherever_one_is_asked() -> None:
    asked = {one.name: one.says.get("deadline", "") for one in _documented() if "deadline" in one.takes}
    for name in ("doral.Problem", "doral.Context"):
        assert {"rounds", "seconds"} <= {*re.findall(r"\w+", asked[name])}, name
    for name, said in asked.items():
        assert "seconds" in said or ("log" in said and "unit" in said), f"{name}: {said}"


def test_the_help_of_the_package_names_everything() -> None:
    text = inspect.getdoc(doral) or ""
    for name in doral.__all__:
        if not name.startswith("__"):
            assert re.search(rf"(?m)^ +{name}\b", text), f"{name} is not in help(doral)"


def _default(words: str, of: str = "Default") -> str | None:
    found = re.search(rf'\b{of}: ("[^"]*"|[^\s"]+?)\.(?=\s|$)', words)
    return None if found is None else found[1]


def _told(value: object) -> str:
    return json.dumps(value) if isinstance(value, str) else repr(value)


@pytest.mark.parametrize("where", [doral.policy, doral.PolicyOptions])
def test_options_of_a_policy_are_described_with_their_defaults_and_words(where: Any) -> None:
    said = Documented("policy", _own_doc(where), ()).says
    usual, otf = PolicyOptions(), policy_of("doral-otf", {})
    for option in OPTION_NAMES:
        words = " ".join(said[option].split())
        assert _default(words) == _told(getattr(usual, option)), option
        differs = getattr(usual, option) != getattr(otf, option)
        assert _default(words, "doral-otf") == (_told(getattr(otf, option)) if differs else None), option
        for word in option_words().get(option, ()):
            assert f'"{word}"' in words, f"{option} does not say what {word} means"
    assert {"rounds", "seconds"} <= {*re.findall(r"\w+", said["cutoff"])}
    assert "Rounds" in said["half_life"]


def test_types_of_options_do_not_drift() -> None:
    told, true = typing.get_type_hints(PolicyOptionsDict), typing.get_type_hints(PolicyOptions)
    assert told == {option: true[option] for option in OPTION_NAMES}
    for option, words in option_words().items():
        assert set(typing.get_args(true[option])) == set(words), option
    own = {*inspect.signature(doral.external).parameters, *external._OURS}
    assert set(OPTION_NAMES) - typing.get_type_hints(OptionsBesideModel).keys() == own & set(OPTION_NAMES)


def test_names_that_are_written_out_do_not_drift() -> None:
    assert typing.get_args(PolicyName) == POLICY_NAMES
    assert typing.get_args(Printed) == PRINTED_READINGS
    assert set(typing.get_args(ReadingName)) == {"corrected", "literal"}
    assert typing.get_args(RivalName) == RIVALS
    strata = [name + STRATA for name in SCENARIOS if name.startswith("people/")]
    assert list(typing.get_args(ScenarioName)) == [*SCENARIOS, *strata]
    settings = {one: setting_names(one) for one in RIVALS}
    for one in typing.get_overloads(doral.rival):
        parameters = inspect.signature(one).parameters
        for name in typing.get_args(typing.get_type_hints(one)["name"]):
            assert {*parameters} - {"name", "label"} == {*settings.pop(name)}
    assert not settings
    reading = inspect.signature(doral.read_log).parameters
    assert [*reading][1:] == [*typing.get_type_hints(ReadOptions)]


def test_where_documents_read_sources_alone_options_are_described_too(tmp_path: Path) -> None:
    package = griffe.load("doral", search_paths=[Path(doral.__file__).parent.parent], allow_inspection=False)
    text = package["engine.options.policy"].docstring.value
    assert all(option in Documented("policy", text, ()).says for option in OPTION_NAMES)
