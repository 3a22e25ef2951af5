"""Who may do what: every route of the application, with every kind of key. A route that is not in the table fails."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import product

import httpx2
import pytest
from starlette.routing import BaseRoute

from doral.live.storage.service_tables import AlarmRow
from doral.service.access.entrance import csrf_of
from doral.service.access.keys import ROLES, new_key, read_key
from doral.service.app import make_app
from doral.service.settings import Limits, ServiceSettings
from tests.service.harness import PROBLEM, Serving, serving

ADMIN, DECIDE, FEEDBACK, READ = (), ("decide",), ("feedback",), ("read",)  # beside administrators, who may do all
ANY = ("decide", "feedback", "read")
# What a route is about decides which campaigns a key must be for.
NOBODY, SOME, ALL, ONE = "public", "any campaigns", "all campaigns", "the campaign of the path"
KITS = "/v1/campaigns/{name}"
PAGE = "/campaigns/{name}"

TABLE: dict[tuple[str, str], tuple[tuple[str, ...], str]] = {
    ("GET", "/healthz"): (ANY, NOBODY),
    ("GET", "/readyz"): (ANY, NOBODY),
    ("GET", "/v1/openapi.json"): (ANY, NOBODY),
    ("GET", "/docs"): (ANY, NOBODY),
    ("GET", "/docs/begin.js"): (ANY, NOBODY),
    ("GET", "/docs/swagger-ui.js"): (ANY, NOBODY),
    ("GET", "/docs/swagger-ui.css"): (ANY, NOBODY),
    ("GET", "/metrics"): (READ, ALL),
    ("GET", "/v1/me"): (ANY, SOME),
    ("GET", "/v1/acts"): (ADMIN, ALL),
    ("GET", "/v1/alarms"): (READ, SOME),
    ("GET", "/v1/campaigns"): (ANY, SOME),
    ("POST", "/v1/campaigns"): (ADMIN, ALL),
    ("GET", KITS): (ANY, ONE),
    ("POST", KITS + "/arms"): (ADMIN, ONE),
    ("POST", KITS + "/arms/{arm}/pause"): (ADMIN, ONE),
    ("POST", KITS + "/arms/{arm}/resume"): (ADMIN, ONE),
    ("POST", KITS + "/arms/{arm}/retire"): (ADMIN, ONE),
    ("POST", KITS + "/budget"): (ADMIN, ONE),
    ("POST", KITS + "/horizon"): (ADMIN, ONE),
    ("POST", KITS + "/expire"): (ADMIN, ONE),
    ("POST", KITS + "/clock"): (ADMIN, ONE),
    ("POST", KITS + "/forget"): (ADMIN, ONE),
    ("POST", KITS + "/pause"): (ADMIN, ONE),
    ("POST", KITS + "/resume"): (ADMIN, ONE),
    ("POST", KITS + "/close"): (ADMIN, ONE),
    ("POST", KITS + "/decisions"): (DECIDE, ONE),
    ("POST", KITS + "/decisions/batch"): (DECIDE, ONE),
    ("POST", KITS + "/decisions/{decision_id}/cancel"): (DECIDE, ONE),
    ("POST", KITS + "/records"): (DECIDE, ONE),
    ("POST", KITS + "/records/batch"): (DECIDE, ONE),
    ("POST", KITS + "/feedback"): (FEEDBACK, ONE),
    ("POST", KITS + "/feedback/batch"): (FEEDBACK, ONE),
    ("POST", KITS + "/feedback/correct"): (FEEDBACK, ONE),
    ("POST", KITS + "/rank"): (DECIDE, ONE),
    ("POST", KITS + "/events/{event_id}/reward"): (FEEDBACK, ONE),
    ("GET", KITS + "/decisions"): (READ, ONE),
    ("GET", KITS + "/decisions/{decision_id}"): (ANY, ONE),
    ("GET", KITS + "/report"): (READ, ONE),
    ("GET", KITS + "/ledger"): (READ, ONE),
    ("GET", KITS + "/facts"): (READ, ONE),
    ("GET", KITS + "/health"): (READ, ONE),
    ("GET", KITS + "/verify"): (ADMIN, ONE),
    ("GET", KITS + "/export"): (READ, ONE),
    ("GET", KITS + "/events"): (READ, ONE),
    ("GET", KITS + "/alarms"): (READ, ONE),
    ("POST", KITS + "/alarms/acknowledge"): (ADMIN, ONE),
    ("POST", KITS + "/alarms/mute"): (ADMIN, ONE),
}
PAGES: dict[tuple[str, str], tuple[tuple[str, ...], str]] = {
    ("GET", "/assets/{name}"): (ANY, NOBODY),
    ("GET", "/sign-in"): (ANY, NOBODY),
    ("POST", "/sign-in"): (ANY, NOBODY),
    ("POST", "/sign-out"): (ANY, SOME),
    ("GET", "/"): (READ, SOME),
    ("GET", "/overview"): (READ, SOME),
    ("GET", "/new"): (ADMIN, ALL),
    ("POST", "/new"): (ADMIN, ALL),
    ("POST", "/new/file"): (ADMIN, ALL),
    ("GET", PAGE): (READ, ONE),
    ("GET", PAGE + "/fragments"): (READ, ONE),
    ("GET", PAGE + "/changes"): (READ, ONE),
    ("GET", PAGE + "/page.html"): (READ, ONE),
    ("GET", PAGE + "/decisions/{decision_id}"): (READ, ONE),
    ("GET", PAGE + "/find"): (READ, ONE),
    ("GET", PAGE + "/preview"): (READ, ONE),
    ("GET", PAGE + "/acts/{act}"): (ADMIN, ONE),
    ("POST", PAGE + "/acts/{act}"): (ADMIN, ONE),
    ("POST", PAGE + "/alarms"): (ADMIN, ONE),
    ("POST", PAGE + "/decisions/{decision_id}/cancel"): (DECIDE, ONE),
}
FORMS = [place for place, (_, about) in PAGES.items() if place[0] == "POST" and about != NOBODY]


def routes(found: Iterable[BaseRoute]) -> Iterator[tuple[str, str]]:
    """Method and path of all routes, also of those that were included from elsewhere."""
    for route in found:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from routes(inner.routes)
        else:
            for method in getattr(route, "methods", None) or ["?"]:
                if method != "HEAD":
                    yield method, getattr(route, "path", repr(route))


THERE = frozenset(routes(make_app(ServiceSettings(storage="memory://")).routes))


def test_every_route_is_in_the_table() -> None:
    known = TABLE.keys() | PAGES.keys()
    assert not THERE - known
    assert not known - THERE


def test_a_demonstration_has_one_more() -> None:
    settings = ServiceSettings(storage="memory://", is_demo=True, demo_token="x" * 43)
    assert set(routes(make_app(settings).routes)) - THERE == {("GET", "/demo")}


@dataclass(frozen=True)
class Keys:
    """All there are: by role, and by the campaigns that they are for; and what no longer is one, or never was."""

    everywhere: dict[str, str]
    kits: dict[str, str]
    other: dict[str, str]
    useless: dict[str, str]


@pytest.fixture(scope="module")
def service() -> Iterator[Serving]:
    settings = ServiceSettings(storage="memory://", limits=Limits(sign_in_failures=10**9))
    with serving(settings=settings) as one:
        for name in ("kits", "other"):
            one.store.create(name, PROBLEM)
        yield one


@pytest.fixture(scope="module")
def keys(service: Serving) -> Keys:
    books, now = service.store.books, time.time()

    def kept(row_and_key: tuple[object, str], **changed: object) -> str:
        row, key = row_and_key
        books.add_key(replace(row, **changed))  # type: ignore[type-var, arg-type]
        return key

    whole = kept(new_key("admin", ["admin"], now=now))
    presented = read_key(whole)
    assert presented is not None
    useless = {
        "malformed": "doral_key",
        "with more behind it": whole + "x",
        "unknown": new_key("never kept", ["admin"], now=now)[1],
        "another's secret": f"doral_{presented.id}_{'x' * 43}",
        "expired": kept(new_key("expired", ["admin"], now=now, expires_at=now + 9), expires_at=now - 1),
        "revoked": kept(new_key("revoked", ["admin"], now=now), revoked_at=now),
        "a session": kept(new_key("session", ["admin"], now=now, parent=presented.id)),
    }
    return Keys(
        everywhere={role: service.make_key(role) for role in ROLES},
        kits={role: service.make_key(role, campaigns=["kits"]) for role in ROLES},
        other={role: service.make_key(role, campaigns=["other", "nowhere"]) for role in ROLES},
        useless=useless,
    )


@pytest.fixture(scope="module")
def anybody(service: Serving) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=service.url, timeout=30.0) as client:
        yield client


def ask(
    client: httpx2.Client, place: tuple[str, str], headers: dict[str, str], form: dict[str, str] | None = None
) -> int:
    """The status of the answer; no more is read of it, for some never end."""
    method, path = place
    path = path.format(name="kits", arm="letter", decision_id="none", event_id="none", act="pause-arm")
    content = {"json": {}} if form is None and path.startswith("/v1/") and method == "POST" else {"data": form}
    with client.stream(method, path, headers=headers, **content) as answer:  # type: ignore[arg-type]
        if answer.status_code == 401:
            assert answer.headers["www-authenticate"] == "Bearer"
            assert answer.headers["content-type"] == "application/problem+json"
        if answer.headers.get("content-type", "").startswith("text/event-stream"):
            return answer.status_code
        answer.read()
        return answer.status_code


def bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


def is_let_in(status: int) -> bool:
    assert status < 500
    return status not in (401, 403, 303)


@pytest.mark.parametrize("place", TABLE, ids=" ".join)
def test_the_api(place: tuple[str, str], service: Serving, keys: Keys, anybody: httpx2.Client) -> None:
    roles, about = TABLE[place]
    if about == NOBODY:
        assert ask(anybody, place, {}) == 200
        return
    assert ask(anybody, place, {}) == 401, "no key"
    for kind, key in keys.useless.items():
        assert ask(anybody, place, bearer(key)) == 401, kind
    assert ask(anybody, place, {"Authorization": "Basic " + keys.everywhere["admin"]}) == 401, "another scheme"
    for role in ROLES:
        has_role = role == "admin" or role in roles
        found = {
            ALL: ask(anybody, place, bearer(keys.everywhere[role])),
            "kits": ask(anybody, place, bearer(keys.kits[role])),
            "other": ask(anybody, place, bearer(keys.other[role])),
        }
        wanted = {ALL: has_role, "kits": has_role and about != ALL, "other": has_role and about == SOME}
        assert {one: is_let_in(status) for one, status in found.items()} == wanted, (role, found)
        assert all(status == 403 for one, status in found.items() if not wanted[one]), (role, found)
    del service


@pytest.mark.parametrize("place", PAGES, ids=" ".join)
def test_pages_and_forms(place: tuple[str, str], service: Serving, keys: Keys, anybody: httpx2.Client) -> None:
    roles, about = PAGES[place]
    own = {"Origin": service.url}
    if about == NOBODY:
        assert is_let_in(ask(anybody, place, own)) or place[0] == "POST"
        return
    assert ask(anybody, place, own) == 303, "to sign in"
    for kind, key in keys.useless.items():
        status = ask(anybody, place, {**own, "Cookie": f"doral={key}"})
        assert status == (303 if kind != "a session" else status), kind
    campaigns: dict[str, tuple[str, ...] | None] = {ALL: None, "kits": ("kits",), "other": ("other",)}
    for role, (which, these) in product(ROLES, campaigns.items()):
        headers, form = signed_in(service, keys, role, these)
        status = ask(anybody, place, {**own, **headers}, form)
        has_role = role == "admin" or role in roles
        wanted = has_role and (which == ALL or about == SOME or (about == ONE and which == "kits"))
        if place == ("POST", "/sign-out"):
            assert status == 303
        else:
            assert (status != 403) == wanted, (role, which, status)


def signed_in(
    service: Serving, keys: Keys, role: str, campaigns: tuple[str, ...] | None = None
) -> tuple[dict[str, str], dict[str, str]]:
    """The headers of somebody who has signed in, and the fields that their forms have."""
    parent = read_key(keys.everywhere[role])
    assert parent is not None
    row, session = new_key(role, [role], now=time.time(), campaigns=campaigns, parent=parent.id)
    service.store.books.add_key(row)
    presented = read_key(session)
    assert presented is not None
    return {"Cookie": f"doral={session}"}, {"csrf": csrf_of(presented)}


@pytest.mark.parametrize("place", FORMS, ids=" ".join)
def test_forms_of_others_are_refused(
    place: tuple[str, str], service: Serving, keys: Keys, anybody: httpx2.Client
) -> None:
    headers, form = signed_in(service, keys, "admin")
    _, form_of_another = signed_in(service, keys, "admin")
    own = {**headers, "Origin": service.url}
    assert ask(anybody, place, headers, form) == 403, "says not where it comes from"
    assert ask(anybody, place, {**headers, "Origin": "https://elsewhere.example"}, form) == 403
    assert ask(anybody, place, {**headers, "Origin": "null"}, form) == 403
    assert ask(anybody, place, {**own, "Sec-Fetch-Site": "cross-site"}, form) == 403
    assert ask(anybody, place, {**own, "Sec-Fetch-Site": "same-site"}, form) == 403
    assert ask(anybody, place, own, {}) == 403, "no field"
    assert ask(anybody, place, own, {"csrf": ""}) == 403
    assert ask(anybody, place, own, {"csrf": "é"}) == 403
    assert ask(anybody, place, own, form_of_another) == 403
    assert ask(anybody, place, {**bearer(keys.everywhere["admin"]), "Origin": service.url}, form) == 403, "a key"
    assert ask(anybody, place, {**own, "Sec-Fetch-Site": "same-origin"}, form) != 403


@pytest.mark.parametrize("place", [one for one in TABLE if one[0] == "POST"], ids=" ".join)
def test_a_cookie_is_no_key_of_the_api(
    place: tuple[str, str], service: Serving, keys: Keys, anybody: httpx2.Client
) -> None:
    headers, form = signed_in(service, keys, "admin")
    assert ask(anybody, place, {**headers, "Origin": service.url, "Sec-Fetch-Site": "same-origin"}) == 401
    assert ask(anybody, place, {**headers, "Origin": service.url}, form) == 401


def test_a_cookie_is_good_for_looking_from_our_own_pages(service: Serving, keys: Keys, anybody: httpx2.Client) -> None:
    headers, _ = signed_in(service, keys, "admin")
    place = ("GET", "/v1/acts")
    assert ask(anybody, place, headers) == 200
    assert ask(anybody, place, {**headers, "Sec-Fetch-Site": "same-origin"}) == 200
    for site in ("cross-site", "same-site"):  # another port of this machine is of the same site
        assert ask(anybody, place, {**headers, "Sec-Fetch-Site": site}) == 401


def test_a_foreign_campaign_looks_like_none(service: Serving, keys: Keys, anybody: httpx2.Client) -> None:
    del service
    key = bearer(keys.kits["admin"])
    answers = [
        anybody.get(f"/v1/campaigns/{name}/decisions", headers=key) for name in ("other", "nothing", "%2e%2e", "KITS")
    ]
    assert {answer.status_code for answer in answers} == {403}
    assert len({answer.json()["detail"] for answer in answers}) == 1


@pytest.mark.parametrize("path", ["/v1/campaigns", "/v1/alarms", "/", "/overview"])
def test_nobody_is_told_of_campaigns_that_are_none_of_theirs(
    path: str, service: Serving, keys: Keys, anybody: httpx2.Client
) -> None:
    alarm = AlarmRow(campaign="kits", rule="pace", subject="", since=time.time(), words="kits is too slow")
    service.store.books.raise_alarm(alarm)
    assert "kits" in anybody.get(path, headers=bearer(keys.kits["read"])).text
    assert "kits" not in anybody.get(path, headers=bearer(keys.other["read"])).text
