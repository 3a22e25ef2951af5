"""What can be chosen about a policy: one word per piece, so that an ablation is one changed word.

Options, their defaults and what they cannot be combined with stand with the pieces; here they come together. The words
are those of `docs/paper.md`; "printed" always means the text of the paper as it stands.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Literal, get_args, get_origin, get_type_hints

from doral import _check
from doral.engine.catalogue import PIECES, PLACES, words
from doral.engine.pieces.bonus import BonusOptions
from doral.engine.pieces.costs import CostOptions
from doral.engine.pieces.drop import DropOptions
from doral.engine.pieces.explore import ExploreOptions
from doral.engine.pieces.forget import ForgetOptions
from doral.engine.pieces.index import IndexOptions
from doral.engine.pieces.learn import LearnOptions
from doral.engine.pieces.outcomes import OutcomesOptions
from doral.engine.pieces.pace import PaceOptions
from doral.engine.pieces.pending import PendingOptions
from doral.engine.pieces.people import PeopleOptions
from doral.engine.pieces.predicted import PredictedOptions
from doral.engine.pieces.prior import PriorOptions
from doral.engine.pieces.race import RaceOptions
from doral.engine.pieces.rate import RateOptions
from doral.engine.pieces.returns import ReturnsOptions
from doral.engine.pieces.start import StartOptions
from doral.engine.pieces.unweighted import ChoiceOptions
from doral.engine.pieces.window import WindowOptions
from doral.errors import InvalidValue, UnknownName


@dataclass(frozen=True, kw_only=True)
class PolicyOptions(
    StartOptions,
    RateOptions,
    PaceOptions,
    DropOptions,
    CostOptions,
    ExploreOptions,
    ReturnsOptions,
    ChoiceOptions,
    WindowOptions,
    PendingOptions,
    PeopleOptions,
    PredictedOptions,
    BonusOptions,
    IndexOptions,
    OutcomesOptions,
    ForgetOptions,
    PriorOptions,
    LearnOptions,
    RaceOptions,
):
    """A policy of the compiled engine, fully specified. Made by `doral.policy`, changed by `dataclasses.replace`.

    The options are those of `doral.policy`, where each is described; defaults are those of "doral".

    Attributes:
        name: What it is called in results.

    >>> PolicyOptions(name="mine", accept=3).pacing
    'lp'
    """

    name: str = "doral"

    @classmethod
    def named(
        cls,
        name: str,
        options: Mapping[str, Any] | None = None,
        *,
        reading: str | None = None,
        label: str | None = None,
    ) -> PolicyOptions:
        """What `doral.policy` makes, for names and options that a program reads and a type checker cannot know.

        Args:
            name: The name of a policy.
            options: Options by name; None: as the name has them.
            reading: "corrected" or "literal"; None: as the name says.
            label: What it is called in results; None: the name and, if options were changed, those.

        >>> PolicyOptions.named("doral", {"accept": 3}).name
        'doral(accept=3)'
        """
        from doral.engine.presets import policy_of  # here: presets are made of options

        return policy_of(name, {} if options is None else options, reading=reading, label=label)

    def __post_init__(self) -> None:
        _check.name("name of a policy", self.name)
        for option, allowed in option_words().items():
            word = getattr(self, option)
            if not _check.is_among(word, allowed):
                raise InvalidValue(option, word, f"must be one of {', '.join(allowed)}")
        for option in _flags():
            flag = getattr(self, option)
            if not isinstance(flag, bool) and not (flag is None and option == "window_bias"):
                raise InvalidValue(option, flag, "must be True or False")
        for piece in (*PLACES.values(), *PIECES.values()):
            if hasattr(piece, "check"):
                piece.check(self)

    def __repr__(self) -> str:
        from doral.engine.shown_policy import in_words  # here and below: it knows the presets, which are options

        return in_words(self)

    def _repr_html_(self) -> str:
        from doral.engine.shown_policy import policy_card

        return policy_card(self)

    def to_dict(self) -> dict[str, Any]:
        """Plain values; `PolicyOptions(**d)` gives an equal object back."""
        return dataclasses.asdict(self)


OPTION_NAMES = tuple(field.name for field in dataclasses.fields(PolicyOptions) if field.name != "name")


@cache
def option_words() -> Mapping[str, tuple[str, ...]]:
    """Options that take one of a few words: names of pieces, or words of a piece."""
    found = {place.OPTION: words(place) for place in PLACES.values()}
    for option, hint in get_type_hints(PolicyOptions).items():
        if get_origin(hint) is Literal:
            found.setdefault(option, get_args(hint))
    return found


@cache
def _flags() -> tuple[str, ...]:
    return tuple(option for option, hint in get_type_hints(PolicyOptions).items() if hint in (bool, bool | None))


def check_option_names(given: Mapping[str, object]) -> None:
    """A misspelt option names itself and the nearest one."""
    for option in given:
        if option not in OPTION_NAMES:
            raise UnknownName("policy option", option, OPTION_NAMES)
