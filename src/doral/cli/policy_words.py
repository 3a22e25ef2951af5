"""Policies as words of the command line: `doral:accept=3,exploration=0.5`."""

from __future__ import annotations

import types
import typing
from collections.abc import Sequence
from typing import Any, Literal

from doral.engine.options import PolicyOptions, check_option_names, option_words
from doral.errors import InvalidValue
from doral.simulation.rivals.rival import RIVALS, NamedPolicy, named_policy, parse_setting

_TRUE, _FALSE = ("true", "yes", "1"), ("false", "no", "0")


def parse_policy(word: str) -> NamedPolicy:
    """The policy that a word describes.

    >>> parse_policy("doral:accept=3").name
    'doral(accept=3)'
    >>> parse_policy("beta-ts-lp:explore=0.05").name
    'beta-ts-lp(explore=0.05)'
    """
    name, colon, rest = word.partition(":")
    if not colon:
        return named_policy(name)
    options: dict[str, Any] = {}
    for setting in rest.split(","):
        option, equals, value = (part.strip() for part in setting.partition("="))
        if not equals or not option:
            raise InvalidValue("policy", word, f"write {name}:OPTION=VALUE,OPTION=VALUE")
        if name not in RIVALS:
            check_option_names({option: value})
        if option in options:
            raise InvalidValue(option, value, f"is given twice in {word!r}")
        options[option] = parse_setting(option, value) if name in RIVALS else _parse(option, value)
    return named_policy(name, **options)


def _parse(option: str, value: str) -> object:
    if option in option_words():
        return value  # the options know their words, and name them
    hint = typing.get_type_hints(PolicyOptions)[option]
    kinds = typing.get_args(hint) if typing.get_origin(hint) in (types.UnionType, typing.Union) else (hint,)
    words = [word for kind in kinds if typing.get_origin(kind) is Literal for word in typing.get_args(kind)]
    if value in words:
        return value
    if value.lower() == "none" and type(None) in kinds:
        return None
    if value.lower() == "none" and typing.get_origin(hint) is Sequence:
        return ()
    for kind in kinds:
        if kind is bool:
            return _flag(option, value)
        if kind is str or typing.get_origin(kind) is Sequence:
            return value  # words with + between them: the options read them
        if kind in (int, float):
            return _number(option, value, kind)
    raise AssertionError(f"option {option} has a type that the command line cannot read")


def _flag(option: str, value: str) -> bool:
    if value.lower() in _TRUE:
        return True
    if value.lower() in _FALSE:
        return False
    raise InvalidValue(option, value, "must be true or false")


def _number(option: str, value: str, kind: type[int] | type[float]) -> float:
    try:
        return kind(value)
    except ValueError:
        raise InvalidValue(option, value, f"must be a {'whole ' if kind is int else ''}number") from None
