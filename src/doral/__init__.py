"""DORAL: spend a limited budget well when answers come back late, or never.

The first lines to type:

    import doral

    result = doral.simulate(["doral-otf", "doral", "random"], "stress/tiny", runs=5)
    print(result)
    result.plot("reward")
    doral.scenario("stress/tiny")

`help(doral.policy)` and so on tells what each name takes. Deadlines are in rounds (arrivals) in a simulation and in
seconds in a live campaign.

What is asked

    Problem           arms, contexts, a budget, an end, a deadline
    Arm               something the budget can be spent on, with its cost
    Context           a class of arrivals, with its share and urgency
    Number            a feature of a person that is a number
    Category          a feature of a person that is one of several words

Policies

    policy            a policy by name, with options changed at will
    PolicyOptions     what `policy` makes: all options of a policy
    rival             what people would use otherwise: an A/B test, what is done today
    external          a policy whose values a model of your own predicts
    PythonPolicy      what a policy of your own has to do: `decide` and `observe`
    Arrival           what a policy sees of an arrival
    Answer            what it sees of an answer

Simulation

    simulate          let policies play scenarios
    simulate_to       the same into a file, which may be larger than memory
    scenario          a scenario that ships, by name
    Scenario          a problem together with what is true of it
    delays            laws of how long answers take
    Arrivals          how people arrive until a date
    Bursts            those of them that come together
    Calendar          arrivals as they were observed
    SimulationResult  what `simulate` returns: tables, differences, pictures
    StoredRuns        what `simulate_to` returns: the file, and its summary
    load              a result that was saved

Live campaigns

    open              a store of campaigns: a file, or a database
    Store             what `open` returns
    Campaign          decides about arrivals, and learns from answers
    Decision          what was decided, why, and what became of it

Campaigns behind a service

    connect           a service, with the calls of a store
    RemoteStore       what `connect` returns
    RemoteCampaign    a campaign there, with the calls of a local one
    connect_async     the same, for programs that go on meanwhile
    AsyncStore        what `connect_async` returns
    AsyncCampaign     a campaign there, with calls that are awaited

Logs

    read_log          a log out of a file or a data frame
    Log               what `read_log` returns
    plan              what a log says of the next campaign
    Plan              what `plan` returns: an answer, and a page with figures
    evaluate          what policies would have brought, had they decided
    Evaluation        what `evaluate` returns

Errors

    DoralError        all that is raised on purpose
    InvalidValue      a value that cannot be used, with what it must be
    UnknownName       a name that is not known, with the nearest
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from doral._version import VERSION

if TYPE_CHECKING:
    from doral import delays as delays
    from doral.client.connect import connect as connect
    from doral.client.connect import connect_async as connect_async
    from doral.client.remote import RemoteCampaign as RemoteCampaign
    from doral.client.remote import RemoteStore as RemoteStore
    from doral.client.remote_async import AsyncCampaign as AsyncCampaign
    from doral.client.remote_async import AsyncStore as AsyncStore
    from doral.engine.options import PolicyOptions as PolicyOptions
    from doral.engine.options import policy as policy
    from doral.errors import DoralError as DoralError
    from doral.errors import InvalidValue as InvalidValue
    from doral.errors import UnknownName as UnknownName
    from doral.evaluation.evaluate import evaluate as evaluate
    from doral.evaluation.evaluation import Evaluation as Evaluation
    from doral.live.campaign import Campaign as Campaign
    from doral.live.store import Store as Store
    from doral.live.store import open as open  # noqa: A004
    from doral.live.views.decision import Decision as Decision
    from doral.logs.log import Log as Log
    from doral.logs.read import read_log as read_log
    from doral.person import Category as Category
    from doral.person import Number as Number
    from doral.planning.make import plan as plan
    from doral.planning.plan import Plan as Plan
    from doral.prediction.external import external as external
    from doral.prediction.python_policy import Answer as Answer
    from doral.prediction.python_policy import Arrival as Arrival
    from doral.prediction.python_policy import PythonPolicy as PythonPolicy
    from doral.problem import Arm as Arm
    from doral.problem import Context as Context
    from doral.problem import Problem as Problem
    from doral.simulation.api import simulate as simulate
    from doral.simulation.catalogue.lookup import scenario as scenario
    from doral.simulation.results.files import load as load
    from doral.simulation.results.result import SimulationResult as SimulationResult
    from doral.simulation.results.stream import StoredRuns as StoredRuns
    from doral.simulation.results.stream import simulate_to as simulate_to
    from doral.simulation.rivals.rival import rival as rival
    from doral.simulation.scenario.arrivals import Arrivals as Arrivals
    from doral.simulation.scenario.arrivals import Bursts as Bursts
    from doral.simulation.scenario.calendar import Calendar as Calendar
    from doral.simulation.scenario.scenario import Scenario as Scenario

__version__ = VERSION

# Names are loaded when first used: `import doral` stays quick and free of compilers.
_HOMES = {
    "Answer": "doral.prediction.python_policy",
    "Arm": "doral.problem",
    "Arrival": "doral.prediction.python_policy",
    "Arrivals": "doral.simulation.scenario.arrivals",
    "AsyncCampaign": "doral.client.remote_async",
    "AsyncStore": "doral.client.remote_async",
    "Bursts": "doral.simulation.scenario.arrivals",
    "Calendar": "doral.simulation.scenario.calendar",
    "Campaign": "doral.live.campaign",
    "Category": "doral.person",
    "Context": "doral.problem",
    "Decision": "doral.live.views.decision",
    "DoralError": "doral.errors",
    "Evaluation": "doral.evaluation.evaluation",
    "InvalidValue": "doral.errors",
    "Log": "doral.logs.log",
    "Number": "doral.person",
    "Plan": "doral.planning.plan",
    "PolicyOptions": "doral.engine.options",
    "Problem": "doral.problem",
    "PythonPolicy": "doral.prediction.python_policy",
    "RemoteCampaign": "doral.client.remote",
    "RemoteStore": "doral.client.remote",
    "Scenario": "doral.simulation.scenario.scenario",
    "SimulationResult": "doral.simulation.results.result",
    "Store": "doral.live.store",
    "StoredRuns": "doral.simulation.results.stream",
    "UnknownName": "doral.errors",
    "connect": "doral.client.connect",
    "connect_async": "doral.client.connect",
    "evaluate": "doral.evaluation.evaluate",
    "external": "doral.prediction.external",
    "load": "doral.simulation.results.files",
    "open": "doral.live.store",
    "plan": "doral.planning.make",
    "policy": "doral.engine.options",
    "read_log": "doral.logs.read",
    "rival": "doral.simulation.rivals.rival",
    "scenario": "doral.simulation.catalogue.lookup",
    "simulate": "doral.simulation.api",
    "simulate_to": "doral.simulation.results.stream",
}

__all__ = ["__version__", "delays", *_HOMES]


def __getattr__(name: str) -> Any:
    if name == "delays":
        return import_module("doral.delays")
    if name not in _HOMES:
        raise AttributeError(f"module 'doral' has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
