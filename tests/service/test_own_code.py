"""Policies and models of the user's own, behind the service: named by its configuration, never by a request."""

from __future__ import annotations

from pathlib import Path

import doral
from doral.engine.setup import PREDICTION_PREFIX
from doral.service.settings import ServiceSettings
from tests.live.people import make_problem
from tests.live.test_own_policy import PROBLEM
from tests.service.harness import serving

CODE = {"one": "tests.live.test_own_policy:Moody", "kits": "tests.live.test_own_policy:external"}


def test_own_policies_and_models_decide_for_requests(tmp_path: Path) -> None:
    """The same decisions as without a service; a restart changes nothing."""
    url = f"sqlite:///{tmp_path / 'served.db'}"
    with doral.open("memory://", code=CODE) as store:
        campaign = store.create("one", PROBLEM, policy="own", seed=7, clock="rounds")
        expected = [campaign.decide("old").arm for _ in range(30)]
    with doral.open(url, code=CODE) as store:
        store.create("one", PROBLEM, policy="own", seed=7, clock="rounds")
        store.create("kits", make_problem(), policy="own", seed=3, clock="rounds")
    made: list[str | None] = []
    for _ in range(2):
        with (
            serving(url, ServiceSettings(storage=url, code=CODE)) as service,
            doral.connect(service.url, key=service.key) as far,
        ):
            made += [far.campaign("one").decide("old").arm for _ in range(10)]
            made += [one.arm for one in far.campaign("one").decide_many(["old"] * 5)]
            kits = far.campaign("kits")
            context = kits.problem.context_names[0]
            decided = kits.decide(context, features={"age": 50, "clinic": "west", "km": 3})
            assert any(name.startswith(PREDICTION_PREFIX) for name in decided.features or ())
    assert made == expected


def test_a_request_creates_a_campaign_for_which_the_service_has_code(tmp_path: Path) -> None:
    """It names no code: without any for this campaign it is refused."""
    url = f"sqlite:///{tmp_path / 'served.db'}"
    asked = {"problem": PROBLEM.to_dict(), "policy": "own", "seed": 7, "clock": "rounds"}
    with serving(url, ServiceSettings(storage=url, code=CODE)) as service, service.client() as client:
        assert client.post("/v1/campaigns", json={"name": "two", **asked}).status_code == 422
        assert client.post("/v1/campaigns", json={"name": "one", **asked, "policy": CODE["one"]}).status_code == 422
        made = client.post("/v1/campaigns", json={"name": "one", **asked})
        assert made.status_code == 201, made.text
        assert client.post("/v1/campaigns", json={"name": "one", **asked, "policy": "doral-otf"}).status_code == 409
        decided = client.post("/v1/campaigns/one/decisions", json={"context": "old"})
        assert decided.json()["reason_code"] in ("own-choice", "own-skip")
