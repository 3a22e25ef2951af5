"""The link of a demonstration: it signs one browser in, once, without a key that somebody would have to type.

Only a service that demonstrates has it, which listens on this machine alone and holds made-up campaigns. Whoever starts
it sees the link; it is worth nothing once it was used.
"""

from __future__ import annotations

import hmac
import time

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from doral.service.access.audit import act_of
from doral.service.access.caller import Caller
from doral.service.access.cookies import set_cookie
from doral.service.access.keys import new_key
from doral.service.access.sessions import LONGEST_S
from doral.service.service import service_of

PATH = "/demo"
_PRIVATE = {"cache-control": "no-store", "referrer-policy": "no-referrer"}
_NAME, _ROLES = "demonstration", ("admin",)


def link_router(token: str, *, leads_to: str) -> APIRouter:
    """The route of the link.

    Args:
        token: That the link carries.
        leads_to: The page that is shown then.
    """
    router = APIRouter(include_in_schema=False)
    unused = [token]

    @router.get(PATH)
    async def enter(request: Request, token: str = "") -> Response:
        if not unused or not hmac.compare_digest(token.encode(), unused[0].encode()):
            # Whoever is signed in sees the campaigns there, and everybody else is asked for a key.
            return RedirectResponse("/", status_code=303)
        unused.clear()
        answer = RedirectResponse(leads_to, status_code=303, headers=_PRIVATE)
        answer.headers["set-cookie"] = await _open_session(request)
        return answer

    return router


async def _open_session(request: Request) -> str:
    """The header `Set-Cookie`: a session of a key that nobody has, and that ends with it."""
    service, now = service_of(request), time.time()
    books = service.entrance.books
    key, _ = new_key(_NAME, _ROLES, now=now, expires_at=now + LONGEST_S)
    row, session = new_key(_NAME, _ROLES, now=now, expires_at=now + LONGEST_S, parent=key.id)

    caller = Caller(key_id=key.id, name=_NAME, roles=frozenset(_ROLES))

    def keep() -> None:
        books.add_key(key)
        books.add_key(row, act_of(request, caller, "signed in", None))

    await service.run(keep)
    return set_cookie(service.settings, session, seconds=int(LONGEST_S))
