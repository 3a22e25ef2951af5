"""Dependencies of routes: who calls, and whether that is allowed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from urllib.parse import urlsplit

from fastapi import Request

from doral.service.access import refusals
from doral.service.access.caller import Caller
from doral.service.access.cookies import CSRF_FIELD, is_same_text, origin_of
from doral.service.service import service_of
from doral.service.settings import ServiceSettings
from doral.wire.problems import ServiceError

Dependency = Callable[[Request], Awaitable[Caller]]
_NO_KEY = 401


def needs(*roles: str, anywhere: bool = False) -> Dependency:
    """A dependency: one of these roles (none given: any), for the campaign that the path names as `name`.

    `anywhere`: the path names none, and a key for some campaigns will do.
    """

    async def find(request: Request) -> Caller:
        caller = await service_of(request).entrance.caller(request.scope)
        _check_may(request, caller, roles, anywhere=anywhere)
        return caller

    return find


def page_needs(*roles: str, anywhere: bool = False) -> Dependency:
    """As `needs`, for a page: by the session of whoever signed in; whoever has not is sent to sign in."""

    async def find(request: Request) -> Caller:
        try:
            caller = await service_of(request).entrance.page_caller(request.scope)
        except ServiceError as error:
            # A script of a page that runs on after its session ended is told so: it cannot sign in.
            if error.status == _NO_KEY and request.headers.get("sec-fetch-mode", "navigate") == "navigate":
                raise refusals.SignInFirst(_asked_for(request)) from None
            raise
        _check_may(request, caller, roles, anywhere=anywhere)
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


def _check_may(request: Request, caller: Caller, roles: tuple[str, ...], *, anywhere: bool) -> None:
    """The words are the same, whether there is such a campaign or not."""
    campaign = request.path_params.get("name")
    who = f"key {caller.key_id} ({caller.name})"
    if roles and "admin" not in caller.roles and caller.roles.isdisjoint(roles):
        raise refusals.not_allowed(f"{who} may not do this: it needs the role {' or '.join(roles)}")
    if campaign is not None and not caller.sees(campaign):
        raise refusals.not_allowed(f"{who} is not for this campaign")
    if campaign is None and not anywhere and caller.campaigns is not None:
        raise refusals.not_allowed(f"{who} may not do this: it is for some campaigns only, and this is about all")
