"""Looks and scripts of the pages: files of this package, under names that change with what is in them."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache

from fastapi import APIRouter, Response

from doral.pages.shell import asset

router = APIRouter(include_in_schema=False)

_FOREVER = "public, max-age=31536000, immutable"  # another content has another name
_TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8", "svg": "image/svg+xml"}
_PACKAGE = "doral.service.pages"
# What each file is made of: the looks of a static page come first, so that a live one looks the same.
_PARTS: dict[str, tuple[tuple[str, str], ...]] = {
    "service.css": (
        ("shell.css", "doral.pages"),
        ("page.css", "doral.live.page"),
        ("service.css", _PACKAGE),
        ("forms.css", _PACKAGE),
    ),
    "theme.js": (("theme.js", _PACKAGE),),
    "sorting.js": (("sorting.js", "doral.pages"),),
    "campaign.js": (("moving.js", _PACKAGE), ("campaign.js", _PACKAGE)),
    "overview.js": (("moving.js", _PACKAGE), ("overview.js", _PACKAGE)),
    "forms.js": (("forms.js", _PACKAGE),),
    "mark.svg": (("mark.svg", _PACKAGE),),
}
_DARK = re.compile(r"@media \(prefers-color-scheme: dark\) \{\s*:root \{([^}]*)\}\s*\}")


@dataclass(frozen=True, kw_only=True)
class Asset:
    """A file as it is sent."""

    url: str
    content: bytes
    media_type: str


@cache
def assets() -> dict[str, Asset]:
    """All of them, by the name that this code has for them."""
    return {name: _made(name) for name in _PARTS}


def url_of(name: str) -> str:
    """Where a page finds it."""
    return assets()[name].url


@router.get("/assets/{name}")
async def send(name: str) -> Response:
    """Whoever has it need never ask again."""
    found = _by_url().get(f"/assets/{name}")
    if found is None:
        return Response("There is no such file.\n", status_code=404, media_type="text/plain")
    headers = {"Cache-Control": _FOREVER, "X-Content-Type-Options": "nosniff"}
    return Response(found.content, media_type=found.media_type, headers=headers)


@cache
def _by_url() -> dict[str, Asset]:
    return {one.url: one for one in assets().values()}


def _made(name: str) -> Asset:
    text = "\n".join(asset(file, package=package) for file, package in _PARTS[name])
    stem, _, kind = name.rpartition(".")
    content = (_with_switch(text) if kind == "css" else text).encode()
    digest = hashlib.sha256(content).hexdigest()[:12]
    return Asset(url=f"/assets/{stem}-{digest}.{kind}", content=content, media_type=_TYPES[kind])


def _with_switch(css: str) -> str:
    """Dark colours where the system is dark, unless somebody has chosen; and where somebody has chosen them."""
    return _DARK.sub(
        lambda found: (
            f'@media (prefers-color-scheme: dark) {{ :root:not([data-theme="light"]) {{{found[1]}}} }}\n'
            f':root[data-theme="dark"] {{{found[1]}}}'
        ),
        css,
    )
