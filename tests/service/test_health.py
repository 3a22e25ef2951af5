from __future__ import annotations

from tests.service.harness import serving


def test_a_service_that_runs_says_so() -> None:
    with serving() as service, service.client() as client:
        assert client.get("/healthz").json() == {"status": "alive"}
