"""Signing in with a key, what a session may do, and how it ends."""

from __future__ import annotations

import time
from collections.abc import Iterator

import httpx2
import pytest

from doral.service.access.entrance import STALE_S, csrf_of
from doral.service.access.guard import LONGEST_S, safe_next
from doral.service.access.keys import new_key, read_key
from doral.service.settings import Limits, ServiceSettings
from tests.service.harness import Serving, serving


@pytest.fixture(scope="module")
def service() -> Iterator[Serving]:
    settings = ServiceSettings(storage="memory://", limits=Limits(sign_in_failures=10**6))
    with serving(settings=settings) as one:
        yield one


@pytest.fixture
def browser(service: Serving) -> Iterator[httpx2.Client]:
    with httpx2.Client(base_url=service.url, headers={"Origin": service.url}) as client:
        yield client


def sign_in(browser: httpx2.Client, key: str) -> httpx2.Response:
    return browser.post("/sign-in", data={"key": key})


def test_whoever_has_a_key_gets_a_session_of_it(service: Serving, browser: httpx2.Client) -> None:
    key = service.make_key("admin")
    answer = sign_in(browser, f" {key}\n")
    assert answer.status_code == 303
    cookie = answer.headers["set-cookie"]
    assert cookie.startswith("doral=doral_")
    assert "HttpOnly; SameSite=Strict" in cookie
    assert "Path=/;" in cookie
    assert LONGEST_S - 5 < int(cookie.split("Max-Age=")[1].split(";")[0]) <= LONGEST_S
    assert key not in cookie
    assert browser.get("/v1/acts").json()["acts"][0]["act"] == "signed in"
    shown = read_key(browser.cookies["doral"])
    parent = read_key(key)
    assert shown is not None
    assert parent is not None
    row = service.store.books.key(shown.id)
    assert row is not None
    assert (row.parent, row.roles) == (parent.id, ("admin",))
    as_key = httpx2.get(service.url + "/v1/acts", headers={"Authorization": f"Bearer {browser.cookies['doral']}"})
    assert as_key.status_code == 401, "a cookie is no key"


def test_a_session_ends_with_its_key(service: Serving, browser: httpx2.Client) -> None:
    key = service.make_key("admin", expires_in_s=1.3)
    answer = sign_in(browser, key)
    assert answer.headers["set-cookie"].split("Max-Age=")[1].startswith("1;")
    assert browser.get("/v1/acts").status_code == 200
    revoked = service.make_key("admin")
    with httpx2.Client(base_url=service.url, headers={"Origin": service.url}) as another:
        sign_in(another, revoked)
        assert another.get("/v1/acts").status_code == 200
        presented = read_key(revoked)
        assert presented is not None
        service.store.books.revoke_key(presented.id, time.time())
        time.sleep(STALE_S)
        assert another.get("/v1/acts").status_code == 401
    cookie = {"Cookie": answer.headers["set-cookie"].split(";")[0]}
    assert httpx2.get(service.url + "/v1/acts", headers=cookie).status_code == 401


def test_a_session_that_was_opened_while_its_key_was_revoked_is_none(service: Serving) -> None:
    key = read_key(service.make_key("admin"))
    assert key is not None
    service.store.books.revoke_key(key.id, time.time())
    row, session = new_key("late", ["admin"], now=time.time(), parent=key.id)
    orphan, lost = new_key("orphan", ["admin"], now=time.time(), parent="0" * 12)
    for each in (row, orphan):
        service.store.books.add_key(each)
    for one in (session, lost):
        assert httpx2.get(service.url + "/v1/acts", headers={"Cookie": f"doral={one}"}).status_code == 401


def test_signing_out_ends_it_at_once(service: Serving, browser: httpx2.Client) -> None:
    sign_in(browser, service.key)
    session = browser.cookies["doral"]
    presented = read_key(session)
    assert presented is not None
    cookie = {"Cookie": f"doral={session}"}
    assert browser.get("/v1/acts").status_code == 200
    assert browser.post("/sign-out", data={}).status_code == 403
    assert browser.get("/v1/acts").status_code == 200
    answer = browser.post("/sign-out", data={"csrf": csrf_of(presented)})
    assert answer.status_code == 303
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert httpx2.get(service.url + "/v1/acts", headers=cookie).status_code == 401
    with service.client() as client:
        assert client.get("/v1/acts").json()["acts"][0]["act"] == "signed out"


def test_a_page_that_was_left_open_keeps_nobody_from_signing_in() -> None:
    with serving(settings=ServiceSettings(storage="memory://", limits=Limits(sign_in_failures=3))) as service:
        session = new_key("dropped", ["admin"], now=time.time(), parent="0" * 12)[1]
        with httpx2.Client(base_url=service.url, headers={"Origin": service.url}) as browser:
            for _ in range(9):
                polled = browser.get("/v1/acts", headers={"Cookie": f"doral={session}"})
                assert polled.status_code == 401
            assert browser.get("/new", headers={"Cookie": f"doral={session}"}).status_code == 303
            assert sign_in(browser, service.make_key("admin")).status_code == 303


def test_nobody_else_signs_somebody_in(service: Serving) -> None:
    for headers in (
        {},
        {"Origin": "https://elsewhere.example"},
        {"Origin": service.url, "Sec-Fetch-Site": "same-site"},
    ):
        answer = httpx2.post(service.url + "/sign-in", data={"key": service.key}, headers=headers)
        assert answer.status_code == 403
        assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("key", ["", "password", "doral_0123456789ab_" + "x" * 43])
def test_what_is_no_key_opens_nothing(browser: httpx2.Client, key: str) -> None:
    answer = sign_in(browser, key)
    assert answer.status_code in (401, 422)
    assert "set-cookie" not in answer.headers


def test_a_key_that_cannot_look_has_nothing_to_see(service: Serving, browser: httpx2.Client) -> None:
    answer = sign_in(browser, service.make_key("decide"))
    assert answer.status_code == 403
    assert "set-cookie" not in answer.headers


def test_whoever_is_not_signed_in_is_brought_back_later(service: Serving) -> None:
    answer = httpx2.get(service.url + "/new")
    assert (answer.status_code, answer.headers["location"]) == (303, "/sign-in?next=/new")
    script = httpx2.get(service.url + "/new", headers={"Sec-Fetch-Mode": "cors"})
    assert script.status_code == 401, "a script cannot sign in"


@pytest.mark.parametrize(
    "wanted",
    ["//evil.example", "https://evil.example", "/\\evil.example", "\\\\evil", "javascript:x", "/a\nb", "", "x"],
)
def test_nobody_is_sent_elsewhere(wanted: str) -> None:
    assert safe_next(wanted) == "/"


def test_one_is_sent_to_a_page_of_ours() -> None:
    assert safe_next("/campaigns/été?x=1#y") == "/campaigns/été?x=1#y"
