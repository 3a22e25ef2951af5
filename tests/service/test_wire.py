"""What goes between a service and its clients comes back as it was: errors, values, and nothing that was not sent."""

from __future__ import annotations

import json
import math
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

import doral
from doral.errors import DoralError, InvalidValue, UnknownName
from doral.live import errors as live
from doral.live.state.parts import Ledger
from doral.live.views.report import Report
from doral.live.views.verify import Verification
from doral.wire.problems import NotAllowed, RequestLost, ServiceError, TooManyRequests, from_problem, to_problem
from doral.wire.values import read_as, read_ledger, read_report

ERRORS: list[DoralError] = [
    InvalidValue("budget", -3, "must be above 0"),
    InvalidValue("budget", "-3", "must be a number"),
    InvalidValue("at", datetime(2026, 1, 1, tzinfo=UTC), "is too late"),
    InvalidValue("reward", math.nan, "must be finite"),
    InvalidValue("available", ["a", "b"], "must be names"),
    InvalidValue("key", "k" * 500, "must be shorter"),
    InvalidValue("key", None, "must be given"),
    InvalidValue("name", "line\nbreak", "must be one line"),
    UnknownName("arm", "lettre", ["letter", "call"]),
    UnknownName("arm", 3, []),
    *(kind("what is wrong, and what to do") for kind in vars(live).values() if isinstance(kind, type)
      and issubclass(kind, DoralError) and kind is not DoralError),
    ServiceError("no room", "too-large", 413),
    NotAllowed("no", "not-allowed", 403),
    TooManyRequests("slowly", "too-many-requests", 429, 1.5),
]  # fmt: skip


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_errors_come_back_as_they_were(error: DoralError) -> None:
    assert to_problem(error, instance="/v1/campaigns")["instance"] == "/v1/campaigns"
    document = json.loads(json.dumps(to_problem(error), allow_nan=False))
    back = from_problem(document, status=document["status"])
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert getattr(back, "retry_after_s", None) == getattr(error, "retry_after_s", None)


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"type": 3},
        {"type": "urn:doral:problem:invalid-value"},
        {"type": "urn:doral:problem:unknown-name"},
        {"detail": None, "title": None},
        {"retry_after_s": "soon", "type": "x"},
    ],
)
def test_documents_of_others_are_errors_too(document: dict[str, Any]) -> None:
    assert isinstance(from_problem(document, status=429), DoralError)


def test_a_lost_request_is_caught_as_a_lost_commit_is() -> None:
    assert issubclass(RequestLost, live.OutcomeUnknown)
    assert issubclass(RequestLost, ServiceError)


def test_values_of_another_version() -> None:
    with doral.open("memory://") as store:
        problem = doral.Problem(arms=["a"], contexts=["x"], budget=1, horizon=3, deadline=2)
        campaign = store.create("c", problem, clock="rounds")
        told = json.loads(json.dumps(campaign.verify().to_dict()))
        assert read_as(Verification, {**told, "of_a_newer_version": 1}) == campaign.verify()
        sent = json.dumps(campaign.report().to_dict()).replace("-Infinity", "null").replace("Infinity", "null")
        report = json.loads(sent)
        assert read_report({**report, "new": []}).arms == campaign.report().arms
    wrongs: tuple[object, ...] = (None, [], {"events": 3}, {**told, "engines": 3}, {**told, "events": "many"})
    for wrong in wrongs:
        with pytest.raises(ValueError, match="Verification"):
            read_as(Verification, wrong)
    with pytest.raises(ValueError, match="Report"):
        read_as(Report, {"name": "c"})


def test_every_digit_of_a_ledger_comes_across() -> None:
    digits = {"total": "0.3", "spent": "0.1", "reserved": "-0.000000000000000000000000000000000001", "left": "1",
              "released": "0"}  # fmt: skip
    assert str(read_ledger(digits).reserved) == "-1E-36"
    assert read_ledger({name: float(amount) for name, amount in digits.items()}).total == read_ledger(digits).total
    assert isinstance(read_ledger(digits), Ledger)


def test_without_its_packages_the_client_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['httpx2'] = None\n"
        "import doral\n"
        "try:\n    doral.connect('http://localhost', key='k')\n"
        "except doral.DoralError as error:\n    print(error)"
    )
    here = {"PYTHONPATH": str(Path(doral.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=here)
    assert "pip install 'doral[serve]'" in done.stdout
