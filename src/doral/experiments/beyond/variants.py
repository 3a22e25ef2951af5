"""What `doral-otf` is made of, one word changed at a time. A new ingredient is a new line."""

from __future__ import annotations

from typing import Any

from doral.engine.options import make_policy as policy
from doral.experiments.beyond.names import REFERENCE
from doral.experiments.kit.cell import Variant
from doral.simulation.catalogue.stress import HORIZON


def _without(says: str, **words: Any) -> Variant:
    return Variant(policy=policy(REFERENCE, **words), says=says, reference=REFERENCE)


INGREDIENTS = (
    _without("a race first, as in the paper", screening="race"),
    _without("each theta shrunk to 0, not to their common mean", prior="noise"),
    _without("features are taken to be right", prior="shared"),
    _without("the bonus of the paper, not in units of the noise", bonus="corrected"),
    _without("a bonus that grows with time, not by how many it is for", bonus="calibrated"),
    _without("planned first tries", start_share=0.05),
    _without("open decisions do not narrow the bonus", pending="ignored"),
    _without("one return curve per arm, for all contexts", curves_by="arm"),
    _without("every answer is thought to return", return_probability="one", cutoff=None),
    _without("silence is read as a missing answer", learner="returned"),
    _without("silence is learned at the deadline", learner="scaled"),
    _without("budget spent as it comes, without the LP", pacing="greedy"),
    _without("Thompson sampling instead of optimism", sampling="thompson", exploration=0.5),
    _without("no features: every context and arm for itself", features="none"),
    _without("answers of 0 and of 1 have return curves of their own", outcome_split=0.5),
    _without("what was learned counts half after a third of a stress scenario", half_life=HORIZON // 3),
)
"""Every piece without which, or with another in its place, `doral-otf` is played."""
