"""What a remote store asks of its service."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from typing import Any

from doral import _check
from doral.client import plain
from doral.client.calls import Call, Page, body_of, path_of
from doral.client.described import described_as
from doral.engine.options import POLICY_NAMES, PolicyOptions, policy_of
from doral.engine.setup import MAX_SEED
from doral.errors import InvalidValue
from doral.live.store import Store
from doral.prediction.external import External
from doral.problem import Problem

_PAGE_NAMES = 1_000


@described_as(Store)
class StoreCalls:
    """The requests about campaigns as a whole."""

    def __init__(self, draw_key: Callable[[], str]) -> None:
        self._draw_key = draw_key

    def create(
        self,
        name: str,
        problem: Problem,
        policy: str | PolicyOptions = "doral-otf",
        seed: int | None = None,
        clock: str = "seconds",
        at: object = None,
        until: object = None,
    ) -> Call[str]:
        name = _check.name("name of a campaign", name)
        if not isinstance(problem, Problem):
            raise InvalidValue("problem", problem, "must be a doral.Problem")
        if seed is not None:
            seed = _check.whole_number("seed", seed, at_least=0, at_most=MAX_SEED)
        asked: dict[str, Any] = {"name": name, "problem": problem.to_dict(), "seed": seed, "clock": clock}
        asked |= {"at": plain.moment("at", at), "until": plain.end(until), **_policy(policy)}
        return Call(
            method="POST",
            path=path_of("campaigns"),
            read=lambda given: str(given["name"]),
            body=body_of({field: value for field, value in asked.items() if value is not None}),
            header_key=self._draw_key(),
            is_change=True,
            is_long=True,
        )

    def campaign(self, name: str) -> Call[str]:
        """A campaign by name.

        Args:
            name: As it was created with.
        """
        path = path_of("campaigns", _check.name("name of a campaign", name))
        return Call(method="GET", path=path, read=lambda given: str(given["name"]))

    def list(self) -> Call[Page[str]]:
        return self._page(None)

    def _page(self, after: str | None) -> Call[Page[str]]:
        def read(given: Mapping[str, Any]) -> Page[str]:
            following = given.get("next")
            return Page(
                items=[str(one["name"]) for one in given["campaigns"]],
                following=None if following is None else self._page(following),
            )

        return Call(method="GET", path=path_of("campaigns", after=after, limit=_PAGE_NAMES), read=read)

    def alarms(self) -> Call[builtins.list[dict[str, Any]]]:
        """What the service has raised an alarm about, in plain values; of the campaigns that the key is for."""
        return Call(method="GET", path=path_of("alarms"), read=lambda given: [dict(one) for one in given["alarms"]])


def _policy(policy: object) -> dict[str, Any]:
    if isinstance(policy, str):
        return {"policy": policy}
    if isinstance(policy, External):
        remedy = "predicts in the process that holds the model: open the store itself there, with doral.open"
        raise InvalidValue("policy", policy, remedy)
    if not isinstance(policy, PolicyOptions):
        remedy = "must be a name or doral.policy(...); code of your own is named where the service runs"
        raise InvalidValue("policy", policy, remedy)
    return _named(policy)


def _named(policy: PolicyOptions) -> dict[str, Any]:
    """A name that ships, what differs from it, and what the whole is called."""
    base = policy.name.partition("(")[0]
    base = base if base in POLICY_NAMES else "doral"
    usual = policy_of(base, {}).to_dict()
    options = {name: value for name, value in policy.to_dict().items() if name != "name" and value != usual[name]}
    return {"policy": base, "options": options} | ({} if policy.name == base else {"label": policy.name})
