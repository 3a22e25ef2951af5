"""Policies by name: presets of the engine, and the rivals that ship."""

from __future__ import annotations

from typing import Any, TypeAlias

from doral.engine.options import POLICY_NAMES, PolicyOptions
from doral.engine.options import make_policy as policy
from doral.errors import UnknownName
from doral.simulation.rivals.rival import RIVALS, Rival, make_rival

NamedPolicy: TypeAlias = PolicyOptions | Rival
NAMES = (*POLICY_NAMES, *RIVALS)


def named_policy(name: str, /, **options: Any) -> NamedPolicy:
    """What `doral.policy` or `doral.rival` makes of a name; an unknown one lists the nearest of both."""
    if name in RIVALS:
        return make_rival(name, **options)
    try:
        return policy(name, **options)
    except UnknownName as error:
        if error.kind == "policy":
            raise UnknownName("policy", name, NAMES) from None
        raise
