"""DORAL with one reading at a time as printed, and every policy as printed throughout. A new line is a new variant."""

from __future__ import annotations

from typing import Any

from doral.engine.options import make_policy as policy
from doral.experiments.kit.cell import Variant
from doral.experiments.paper.names import POLICIES


def _variant(says: str, **options: Any) -> Variant:
    return Variant(policy=policy("doral", **options), says=says, reference="doral")


ABLATION = (
    Variant(policy=policy("doral"), says="the reading of this reproduction", reference="doral"),
    Variant(policy=policy("doral/literal"), says="every piece as printed, at once", reference="doral"),
    _variant("printed rule of acceptance, which picks slow arms", printed=["acceptance"]),
    _variant("printed number of baskets", printed=["baskets"]),
    _variant("cut-off m over all arms, as printed", printed=["cutoff"]),
    _variant("printed ridge: all pulls, returned rewards", learner="thinned"),
    _variant("ridge on features times return probability", learner="scaled"),
    _variant("printed confidence bonus", printed=["bonus"]),
    _variant("arm by the index alone, as printed", printed=["choice"]),
    _variant("true return probabilities given", return_probability="oracle"),
    _variant("return probability by m, not by the deadline", printed=["returns"]),
    _variant("printed rate b_t / t", printed=["rate"]),
    _variant("race counts pending pulls at their age", censoring="min_age"),
    _variant("race on Kaplan-Meier means", censoring="kaplan_meier"),
    _variant("race is told every delay at once", censoring="instant"),
    *(
        Variant(policy=policy(name), says=says, reference=name.partition("/")[0])
        for preset in POLICIES[1:]
        for name, says in (
            (preset, "the reading of this reproduction"),
            (f"{preset}/literal", "every piece as printed, at once"),
        )
    ),
)
