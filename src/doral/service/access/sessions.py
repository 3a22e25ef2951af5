"""Signing in on a page with a key, and out again."""

from __future__ import annotations

import time
from dataclasses import replace

from fastapi import Request

from doral.service.access import refusals
from doral.service.access.audit import act_of
from doral.service.access.caller import Caller
from doral.service.access.cookies import csrf_of, set_cookie
from doral.service.access.entrance import address_of
from doral.service.access.guard import refuse_other_sites
from doral.service.access.keys import new_key, read_key
from doral.service.service import service_of

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
