"""What answers say to browsers, by which names the service is served, and on which addresses it may listen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx2
import pytest

from doral.errors import InvalidValue
from doral.live.storage.contract import CampaignRow
from doral.live.storage.memory import MemoryStorage
from doral.service.access.entrance import cookie_in, origin_of, set_cookie
from doral.service.access.middleware import CONTENT_POLICY, check_binding
from doral.service.settings import ServiceSettings
from tests.service.harness import Serving, serving

SETTINGS = ServiceSettings(storage="memory://")
CERT, KEY = Path("cert.pem"), Path("key.pem")


@pytest.fixture(scope="module")
def service() -> Iterator[Serving]:
    with serving() as one:
        yield one


@pytest.fixture(scope="module")
def public() -> Iterator[Serving]:
    with serving(settings=replace(SETTINGS, public_url="https://campaigns.example.org")) as one:
        yield one


@pytest.mark.parametrize("path", ["/healthz", "/v1/acts", "/nothing/here", "/v1/me%00", "/assets/none.js"])
@pytest.mark.parametrize("with_key", [True, False])
def test_every_answer_has_them(service: Serving, path: str, with_key: bool) -> None:
    answer = httpx2.get(service.url + path, headers=service.headers if with_key else {})
    headers = answer.headers
    assert headers.get_list("content-security-policy") == [CONTENT_POLICY]
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["referrer-policy"] == "same-origin"
    assert headers["cross-origin-opener-policy"] == headers["cross-origin-resource-policy"] == "same-origin"
    assert "geolocation=()" in headers["permissions-policy"]
    assert "server" not in headers
    assert "strict-transport-security" not in headers
    assert "access-control-allow-origin" not in headers


def test_an_answer_that_nobody_foresaw_has_them_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(storage: MemoryStorage) -> list[CampaignRow]:
        raise RuntimeError("what is inside")

    with serving() as service, service.client() as client:
        usual = dict(client.get("/healthz").headers)
        monkeypatch.setattr(MemoryStorage, "campaigns", fail)
        answer = client.get("/v1/campaigns")
    assert answer.status_code == 500
    assert "inside" not in answer.text
    assert {name for name in usual if "-" in name} - answer.headers.keys() == set()
    assert answer.headers["content-security-policy"] == CONTENT_POLICY


def test_no_inline_script_and_no_stranger_in_a_frame() -> None:
    rules = dict(rule.strip().split(" ", 1) for rule in CONTENT_POLICY.split(";"))
    assert rules["default-src"] == rules["base-uri"] == rules["frame-ancestors"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["form-action"] == "'self'"
    assert "unsafe" not in CONTENT_POLICY


def test_assets_are_kept_and_errors_are_not(service: Serving) -> None:
    with service.client() as client:
        assert client.get("/assets/none-such.css").headers["cache-control"] == "no-store"


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]:8787", "localhost."])
def test_own_names_are_served(service: Serving, host: str) -> None:
    assert httpx2.get(service.url + "/v1/acts", headers={**service.headers, "Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "localhost.evil.example", "127.0.0.1.nip.io", "", "evil@localhost", "::1", "[::1", "0"]
)
def test_a_name_of_a_stranger_that_leads_here_is_not_served(service: Serving, host: str) -> None:
    answer = httpx2.get(service.url + "/v1/acts", headers={**service.headers, "Host": host})
    assert answer.status_code in (400, 421)
    if answer.status_code == 421:
        assert answer.json()["type"] == "urn:doral:problem:misdirected-request"
        assert answer.headers["x-frame-options"] == "DENY"


def test_probes_know_no_names(service: Serving) -> None:
    assert httpx2.get(service.url + "/healthz", headers={"Host": "10.2.3.4:8787"}).status_code == 200


def test_where_a_proxy_speaks_tls(public: Serving) -> None:
    headers = {**public.headers, "Host": "campaigns.example.org"}
    answer = httpx2.get(public.url + "/v1/acts", headers=headers)
    assert answer.status_code == 200
    assert answer.headers["strict-transport-security"] == "max-age=31536000"
    assert httpx2.get(public.url + "/v1/acts", headers={**headers, "Host": "evil.example"}).status_code == 421
    assert httpx2.get(public.url + "/v1/acts", headers=public.headers).status_code == 200, "from this machine"


def test_cookies() -> None:
    plain = set_cookie(SETTINGS, "x", seconds=5)
    assert plain == "doral=x; Max-Age=5; Path=/; HttpOnly; SameSite=Strict"
    for settings in (
        replace(SETTINGS, public_url="https://campaigns.example.org"),
        replace(SETTINGS, tls_cert=CERT, tls_key=KEY),
    ):
        assert set_cookie(settings, "x", seconds=5) == "__Host-" + plain + "; Secure"
    assert cookie_in("a=1; doral=x; doral=y", "doral") == "x"
    assert cookie_in("xdoral=1; doral", "doral") == ""
    assert cookie_in("", "doral") is None


def test_origins_are_compared_as_browsers_write_them() -> None:
    assert origin_of("https://Campaigns.Example.org:443/") == "https://campaigns.example.org"
    assert origin_of("http://[::1]:8787") == "http://[::1]:8787"
    assert origin_of("http://localhost:80") == "http://localhost"


@pytest.mark.parametrize(
    "settings",
    [
        SETTINGS,
        replace(SETTINGS, host="::1"),
        replace(SETTINGS, host="127.9.9.9"),
        replace(SETTINGS, host="localhost"),
        replace(SETTINGS, host="0.0.0.0", tls_cert=CERT, tls_key=KEY, allow_direct=True),
        replace(SETTINGS, host="0.0.0.0", allow_plain_http=True),
        replace(SETTINGS, public_url="https://campaigns.example.org/"),
    ],
)
def test_addresses_that_may_be_listened_on(settings: ServiceSettings) -> None:
    check_binding(settings)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"host": "0.0.0.0"}, "host = '0.0.0.0': others can reach this address"),
        ({"host": "::"}, "others can reach"),
        ({"host": "::", "tls_cert": CERT, "tls_key": KEY}, "no balancer stands before it"),
        ({"host": ""}, "others can reach"),
        ({"host": "192.168.1.4"}, "others can reach"),
        ({"host": "localhost.example.org"}, "others can reach"),
        ({"host": "0.0.0.0", "public_url": "https://campaigns.example.org"}, "others can reach"),
        ({"tls_cert": CERT}, "tls_cert = 'cert.pem': give both"),
        ({"tls_key": KEY}, "tls_key = 'key.pem': give both"),
        ({"public_url": "campaigns.example.org"}, "public_url"),
        ({"public_url": "https://campaigns.example.org/doral"}, "public_url"),
        ({"public_url": "https://user@campaigns.example.org"}, "public_url"),
        ({"public_url": "https://[half"}, "public_url"),
        ({"public_url": "ftp://campaigns.example.org"}, "public_url"),
    ],
)
def test_addresses_that_may_not(changed: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        check_binding(replace(SETTINGS, **changed))  # type: ignore[arg-type]
    assert said in str(refused.value)
