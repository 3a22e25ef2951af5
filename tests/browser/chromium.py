"""A Chromium that is on the machine already; none is fetched."""

from __future__ import annotations

import os
import shutil

VARIABLE = "DORAL_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
REMEDY = f"no Chromium: install Debian's `chromium`, or name one in {VARIABLE}; pages are not looked at in a browser"
# Also as root and in containers, and without a word to anybody.
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
)


def find() -> str | None:
    """Where it is; one that is named in the environment comes first."""
    named = os.environ.get(VARIABLE)
    if named:
        return shutil.which(named)
    return next((found for name in NAMES if (found := shutil.which(name))), None)
