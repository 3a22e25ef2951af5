"""First states for many runs of one problem: what those of a policy have in common is made once."""

from __future__ import annotations

from doral._kernel import Block, Template
from doral.engine.blueprint import Blueprint
from doral.engine.compose import coin_of, composes_all, first_state
from doral.engine.options import PolicyOptions
from doral.engine.pieces.people import arm_design
from doral.engine.state import State, has
from doral.estimators.ridge import set_features

MOST_POLICIES = 64  # that are remembered


class FirstStates:
    """Of runs that have the problem in common, and the return probabilities where they are given.

    They differ in their coins, and in their features and true values where these are drawn.
    """

    def __init__(self) -> None:
        self._templates: dict[tuple[PolicyOptions, bool], Template[State]] = {}

    def block(self, blueprint: Blueprint) -> Block[State]:
        """What `first_state` makes of this blueprint, in a block."""
        block = self._template(blueprint).block()
        if blueprint.problem.person:
            block.tree.people.line.arms[:] = arm_design(blueprint)
        else:
            set_features(block.tree.ridge, blueprint.features)
        if has(block.tree, "index_oracle") and blueprint.true_values is not None:
            block.tree.truth.values[:] = blueprint.true_values
        block.replace(coin=coin_of(blueprint))
        return block

    def _template(self, blueprint: Blueprint) -> Template[State]:
        key = blueprint.options, composes_all()
        template = self._templates.get(key)
        if template is None:
            shared = () if blueprint.oracle is None else (blueprint.oracle,)
            template = Template(first_state(blueprint), shared=shared)
            if len(self._templates) >= MOST_POLICIES:  # also when threads come at the same time: one more, or one less
                self._templates.clear()
            self._templates[key] = template
        return template
