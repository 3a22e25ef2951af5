"""Dependencies of routes: who calls, and whether that is allowed; signing in and out; notes of administrative acts."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer, SecurityScopes

from doral.live.storage.service_tables import ActRow
from doral.service.access import refusals
from doral.service.access.entrance import CSRF_FIELD, address_of, csrf_of, is_same_text, origin_of, set_cookie
from doral.service.access.keys import Caller, act_row, new_key, read_key
from doral.service.service import service_of
from doral.service.settings import ServiceSettings
from doral.wire.problems import ServiceError

_log = logging.getLogger("doral.service.audit")


def act_of(request: Request, caller: Caller, act: str, campaign: str | None, **details: Any) -> ActRow:
    """The note of an act, which is stored in one transaction with what it changes.

    Args:
        request: That asked for it.
        caller: Who asked.
        act: In a few words, such as "arm paused".
        campaign: Its name; None where it concerns none.
        details: What else to know; nothing secret, and no person.
    """
    _log.info("%s (key %s, campaign %s)", act, caller.key_id, campaign)
    return act_row(
        act,
        campaign,
        details,
        at=time.time(),
        key_id=caller.key_id,
        key_name=caller.name,
        request_id=str(getattr(request.state, "request_id", "")),
        address=address_of(request.scope),
    )


Dependency = Callable[[Request], Awaitable[Caller]]
_NO_KEY = 401
_bearer = HTTPBearer(auto_error=False, scheme_name="key", description="A key, as `doral keys` makes it.")
_Described = Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]  # the entrance reads the header itself


async def caller_of_campaign(request: Request, roles: SecurityScopes, _: _Described = None) -> Caller:
    """A dependency: who calls, with one of the scopes as a role (none: any), for the campaign that the path names."""
    caller = await service_of(request).entrance.caller(request.scope)
    check_may(request, caller, roles.scopes, anywhere=False)
    return caller


async def caller_anywhere(request: Request, roles: SecurityScopes, _: _Described = None) -> Caller:
    """The same where the path names no campaign, and a key for some campaigns will do."""
    caller = await service_of(request).entrance.caller(request.scope)
    check_may(request, caller, roles.scopes, anywhere=True)
    return caller


# Who may call a route: administrators may do all.
Admin = Annotated[Caller, Security(caller_of_campaign, scopes=["admin"])]
Decider = Annotated[Caller, Security(caller_of_campaign, scopes=["decide"])]
Answerer = Annotated[Caller, Security(caller_of_campaign, scopes=["feedback"])]
Reader = Annotated[Caller, Security(caller_of_campaign, scopes=["read"])]
Known = Annotated[Caller, Security(caller_of_campaign, scopes=["decide", "feedback", "read"])]
ReaderAnywhere = Annotated[Caller, Security(caller_anywhere, scopes=["read"])]
KnownAnywhere = Annotated[Caller, Security(caller_anywhere, scopes=["decide", "feedback", "read"])]


def page_needs(*roles: str, anywhere: bool = False) -> Dependency:
    """A dependency of a page: by the session of whoever signed in; whoever has not is sent to sign in."""

    async def find(request: Request) -> Caller:
        try:
            caller = await service_of(request).entrance.page_caller(request.scope)
        except ServiceError as error:
            # A script of a page that runs on after its session ended is told so: it cannot sign in.
            if error.status == _NO_KEY and request.headers.get("sec-fetch-mode", "navigate") == "navigate":
                raise refusals.SignInFirst(_asked_for(request)) from None
            raise
        check_may(request, caller, roles, anywhere=anywhere)
        return caller

    return find


def form_needs(*roles: str, anywhere: bool = False) -> Dependency:
    """As `page_needs`, for what forms are sent to: the form is one of our own pages', of this very session."""
    find_page = page_needs(*roles, anywhere=anywhere)

    async def find(request: Request) -> Caller:
        refuse_other_sites(request)
        caller = await find_page(request)
        if caller.csrf is None:
            raise refusals.foreign_form("a form is sent by whoever has signed in, not with a key")
        form = await request.form()
        if not is_same_text(form.get(CSRF_FIELD), caller.csrf):
            raise refusals.foreign_form("the form does not belong to this session")
        return caller

    return find


page_caller = page_needs("read", anywhere=True)


def refuse_other_sites(request: Request) -> None:
    """A form that a page of another site has sent, or that does not say where it comes from, as all browsers do."""
    site, origin = request.headers.get("sec-fetch-site"), request.headers.get("origin")
    own = own_origin(request, service_of(request).settings)
    if (site is None and origin is None) or site not in (None, "same-origin") or origin not in (None, own):
        raise refusals.foreign_form("the form was not sent by a page of this service")


def own_origin(request: Request, settings: ServiceSettings) -> str:
    """Under which browsers know this service."""
    if settings.public_url is not None:
        return origin_of(settings.public_url)
    return origin_of(f"{request.scope['scheme']}://{request.headers.get('host', '')}")


def safe_next(wanted: str | None) -> str:
    """Where to go after signing in: a page of ours, and nowhere else.

    >>> safe_next("/campaigns/kits?x=1"), safe_next("//elsewhere"), safe_next("https://elsewhere"), safe_next(None)
    ('/campaigns/kits?x=1', '/', '/', '/')
    """
    if not wanted or not wanted.startswith("/") or wanted.startswith(("//", "/\\")) or not wanted.isprintable():
        return "/"
    parts = urlsplit(wanted)
    return "/" if parts.scheme or parts.netloc or "\\" in wanted else wanted


def _asked_for(request: Request) -> str:
    return request.url.path if request.method in ("GET", "HEAD") else "/"


def check_may(request: Request, caller: Caller, roles: Sequence[str], *, anywhere: bool) -> None:
    """The words are the same, whether there is such a campaign or not."""
    campaign = request.path_params.get("name")
    who = f"key {caller.key_id} ({caller.name})"
    if roles and "admin" not in caller.roles and caller.roles.isdisjoint(roles):
        raise refusals.not_allowed(f"{who} may not do this: it needs the role {' or '.join(roles)}")
    if campaign is not None and not caller.sees(campaign):
        raise refusals.not_allowed(f"{who} is not for this campaign")
    if campaign is None and not anywhere and caller.campaigns is not None:
        raise refusals.not_allowed(f"{who} may not do this: it is for some campaigns only, and this is about all")


LONGEST_S = 12 * 3600.0


async def sign_in(request: Request, key: str) -> tuple[Caller, str]:
    """Who has signed in, and the header `Set-Cookie` of the answer; a ServiceError where this is no key.

    Args:
        request: Of the form.
        key: What was typed in.
    """
    refuse_other_sites(request)
    service = service_of(request)
    caller = await service.entrance.key(key.strip(), address_of(request.scope))
    if caller.roles.isdisjoint(("admin", "read")):
        raise refusals.not_allowed(f"key {caller.key_id} ({caller.name}) may not look at pages: it needs the role read")
    now = time.time()
    books = service.entrance.books
    parent = await service.run(lambda: books.key(caller.key_id))
    ends = now + LONGEST_S if parent is None or parent.expires_at is None else min(now + LONGEST_S, parent.expires_at)
    row, session = new_key(
        caller.name,
        caller.roles,
        now=now,
        campaigns=None if caller.campaigns is None else sorted(caller.campaigns),
        expires_at=ends,
        parent=caller.key_id,
    )

    def keep() -> None:
        books.drop_sessions(expired_before=now)
        books.add_key(row, act_of(request, caller, "signed in", None))

    await service.run(keep)
    presented = read_key(session)
    assert presented is not None
    caller = replace(caller, csrf=csrf_of(presented))
    return caller, set_cookie(service.settings, session, seconds=int(ends - now))


async def sign_out(request: Request, caller: Caller) -> str:
    """The session ends, here and in all other processes; the header `Set-Cookie` of the answer.

    Args:
        request: Of the form.
        caller: Who signs out.
    """
    service = service_of(request)
    entrance = service.entrance
    presented = entrance.presented_session(request.scope)
    if presented is not None:
        session = presented.id
        act = act_of(request, caller, "signed out", None)
        await service.run(lambda: entrance.books.revoke_key(session, time.time(), act))
        entrance.keyring.forget(session)
    return set_cookie(service.settings, "", seconds=0)
