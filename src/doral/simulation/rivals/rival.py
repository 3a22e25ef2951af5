"""Rivals by name: `doral.rival`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeAlias, overload

from doral import _check
from doral._input_types import Numbers, NumberTable
from doral.compiled.key import modules_digest
from doral.engine.options import POLICY_NAMES, PolicyOptions
from doral.engine.options import make_policy as policy
from doral.errors import InvalidValue, UnknownName, shown
from doral.prediction.python_policy import PythonPolicy
from doral.problem import Problem
from doral.simulation.rivals import policies
from doral.simulation.rivals.trials import Settings


@dataclass(frozen=True)
class _Kind:
    policy: Callable[[Problem, int, Any], PythonPolicy]
    settings: Callable[..., Settings]
    is_at_list_prices: bool = False  # it does not learn what is paid


_KINDS: Mapping[str, _Kind] = {
    "beta-ts-lp": _Kind(policies.BetaTSLP, policies.BetaTSLPSettings),
    "explore-then-lp": _Kind(policies.ExploreThenLP, policies.ExploreThenLPSettings),
    "a/b": _Kind(policies.AB, policies.ABSettings, is_at_list_prices=True),
    "status-quo": _Kind(policies.StatusQuo, policies.StatusQuoSettings, is_at_list_prices=True),
}
RIVALS = tuple(_KINDS)
AT_LIST_PRICES = tuple(name for name, kind in _KINDS.items() if kind.is_at_list_prices)


@dataclass(frozen=True, kw_only=True)
class Rival:
    """A rival with its settings; called with a problem and a seed it makes a fresh policy for one run."""

    kind: str
    settings: Settings
    name: str

    def __repr__(self) -> str:
        settings = ", ".join(f"{name} {shown(value)}" for name, value in asdict(self.settings).items())
        kind = "" if self.name == self.kind else f"{self.kind}, "
        return f"<Rival {self.name!r}: {kind}{settings}>"

    def _repr_html_(self) -> str:
        from doral.pages.notebook import card

        settings = [(name, shown(value)) for name, value in asdict(self.settings).items()]
        return card(f"Rival {self.name}", [("Kind", self.kind), *settings])

    def __call__(self, problem: Problem, seed: int) -> PythonPolicy:
        return _KINDS[self.kind].policy(problem, seed, self.settings)

    def to_dict(self) -> dict[str, Any]:
        """Plain values that JSON can hold, with what its decisions depend on beside the engine."""
        return {"rival": self.kind, "name": self.name, **asdict(self.settings), "sources": modules_digest(__name__)}


def make_rival(name: str, /, *, label: str | None = None, **settings: Any) -> Rival:
    """Return a rival with checked settings, from arguments of any source."""
    if not _check.is_among(name, _KINDS):
        raise UnknownName("rival", name, RIVALS)
    for given in settings:
        if given not in setting_names(name):
            raise UnknownName(f"setting of {name}", given, setting_names(name))
    changed = ", ".join(f"{setting}={value}" for setting, value in sorted(settings.items()))
    called = f"{name}({changed})" if changed else name
    if label is not None:
        called = _check.name("label", label)
    return Rival(kind=name, settings=_KINDS[name].settings(**settings), name=called)


def setting_names(name: str) -> tuple[str, ...]:
    """What can be set."""
    return tuple(field.name for field in fields(_KINDS[name].settings()))


def parse_setting(setting: str, value: str) -> object:
    """A setting as a word of the command line: a number, several with a slash between them, or rows of them by ;."""
    try:
        if setting == "chances":
            return tuple(tuple(map(float, row.split("/"))) for row in value.split(";"))
        return tuple(float(part) for part in value.split("/")) if setting == "shares" else float(value)
    except ValueError:
        remedy = "must be a number, or several as in 0.5/0.3/0.2 for shares, or 0.5/0.3;0.1/0.2 for chances by context"
        raise InvalidValue(setting, value, remedy) from None


RivalName: TypeAlias = Literal["beta-ts-lp", "explore-then-lp", "a/b", "status-quo"]


@overload
def rival(
    name: Literal["beta-ts-lp"], /, *, label: str | None = None, explore: float = ..., width: float = ...
) -> Rival: ...


@overload
def rival(name: Literal["explore-then-lp", "a/b"], /, *, label: str | None = None, explore: float = ...) -> Rival: ...


@overload
def rival(
    name: Literal["status-quo"],
    /,
    *,
    label: str | None = None,
    shares: Numbers | None = ...,
    chances: NumberTable | None = ...,
) -> Rival: ...


def rival(name: RivalName, /, *, label: str | None = None, **settings: Any) -> Rival:
    """A rival by name, with settings changed at will.

    Args:
        name: "beta-ts-lp": Thompson draws from Beta posteriors, and the budget as DORAL paces it; "explore-then-lp":
            all arms alike for a while, then the best by what they earned, paced alike; "a/b": a test of all arms for a
            while, then the winner of each context; "status-quo": what is done today; nothing is learned.
        label: What it is called in results. Default: the name and, if settings were changed, those.

    Keyword Args:
        explore: "beta-ts-lp": the share of the budget that is spent on all arms alike, default 0.02; "explore-then-lp"
            and "a/b": the share of the horizon that the test takes, default 0.1 and 0.2. From 0 to 1.
        width: "beta-ts-lp": how far draws lie from the mean; 1 is Thompson's. Default: 0.5.
        shares: "status-quo": how often each arm is used, in the order of the problem, relative to each other; a coin
            makes the budget last. Default: all alike.
        chances: "status-quo": by context, the chance with which each arm is given to an arrival; the rest get
            nothing, and nothing paces it. Default: `shares` say it.

    >>> rival("beta-ts-lp", explore=0.05).name
    'beta-ts-lp(explore=0.05)'
    """
    return make_rival(name, label=label, **settings)


# --- policies by name ------------------------------------------------------------------------------------------------

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
