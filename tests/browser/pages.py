"""The pages that are looked at: a name, and a function that has the page written. A new line is a new page."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

import doral
from doral.engine.options import make_policy
from doral.experiments.beyond import page as beyond
from doral.experiments.beyond.cells import BeyondExtent
from doral.experiments.kit.conduct import conduct
from doral.pages import images
from doral.planning.plan import Plan
from doral.planning.report.figures import drawings, markup_of
from doral.planning.report.page import page
from doral.planning.report.tables import tables
from doral.simulation.catalogue.lookup import CLASS_SCENARIOS
from tests.experiments import reproduction
from tests.experiments.pages import Silent
from tests.once import Once
from tests.planning.plans import a_plan, hostile_plan

Writer = Callable[[Once], Path]


def _alone(name: str, write: Callable[[Path], Path]) -> Writer:
    """A page that nobody else has a use for."""

    def written(once: Once) -> Path:
        with pytest.MonkeyPatch.context() as patch:
            patch.delitem(images._METADATA, "pdf")  # no page shows one
            return once(f"page-{name}", write)[1]

    return written


def _reproduction(once: Once) -> Path:
    return once("reproduction", reproduction.make)[0] / "report.html"


def _comparison(folder: Path) -> Path:
    names = ("paper/diverse-pareto", "stress/drift", "stress/context-delays")
    extent = BeyondExtent(
        policies=tuple(make_policy(name) for name in ("doral-otf", "doral", "d-alp", "d-linucb", "random")),
        scenarios=tuple(CLASS_SCENARIOS[name] for name in names),
        runs=3,
        side_runs=2,
        shrink=100,
    )
    conduct(beyond.EXPERIMENT, extent, seed=1, n_jobs=1, out=folder, progress=Silent(), command="doral compare")
    return folder / "report.html"


def _plan(plan: Plan, folder: Path) -> Path:
    drawn = drawings(plan)
    written = folder / "plan.html"
    text = page(plan, drawn=drawn, pictures=markup_of(drawn), tables=tables(plan))
    written.write_text(text, encoding="utf-8")
    return written


def _campaign(folder: Path, *, people: int, arms: Sequence[str], contexts: Sequence[str]) -> Path:
    """A campaign in which so many have come, one in three has been heard of, and time has gone by."""
    problem = doral.Problem(
        arms=[doral.Arm(name, features=[position, 1.0], cost=1.0 + position) for position, name in enumerate(arms)],
        contexts={name: 1.0 / len(contexts) for name in contexts},
        budget=120.0,
        horizon=400,
        deadline=20,
    )
    written = folder / "campaign.html"
    with doral.open("memory://") as store:
        campaign = store.create(arms[0], problem, policy="doral-otf", seed=1, clock="rounds")
        for number in range(people):
            made = campaign.decide(contexts[number % len(contexts)])
            if made.arm is not None and number % 3 == 0:
                campaign.feedback(made.id, float(number % 2))
        campaign.page(written)
    return written


HOSTILE = (
    '<script>alert("1")</script>',
    "a name that is much longer than anybody should give to an arm " * 2,
    "日本 [x]",
)

PAGES: dict[str, Writer] = {
    "reproduce": _reproduction,
    "compare": _alone("compare", _comparison),
    "plan": _alone("plan", lambda folder: _plan(a_plan(), folder)),
    "plan-of-hostile-names": _alone("hostile-plan", lambda folder: _plan(hostile_plan(), folder)),
    "campaign": _alone(
        "campaign",
        lambda folder: _campaign(folder, people=90, arms=("text", "letter", "call"), contexts=("old", "young")),
    ),
    "campaign-of-hostile-names": _alone(
        "hostile-campaign", lambda folder: _campaign(folder, people=9, arms=HOSTILE, contexts=HOSTILE[1:])
    ),
}
