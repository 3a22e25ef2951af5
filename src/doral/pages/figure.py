"""Figures that display themselves: in notebooks, and at a terminal in the image viewer."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from typing import Any

from matplotlib import figure as matplotlib_figure

_DOTS_PER_INCH = 160  # sharp on fine screens; shown at the size that it has in inches
_CSS_DOTS_PER_INCH = 96


class Figure(matplotlib_figure.Figure):
    """A Matplotlib figure without pyplot: nothing is shown, nor kept open, unless asked for."""

    def _repr_png_(self) -> tuple[bytes, dict[str, Any]]:
        """What a notebook shows, with the size on the page."""
        width, height = self.get_size_inches()
        shape = {"width": round(width * _CSS_DOTS_PER_INCH), "height": round(height * _CSS_DOTS_PER_INCH)}
        return self._png(), shape

    def _png(self) -> bytes:
        buffer = io.BytesIO()
        with warnings.catch_warnings():  # names may be in any script; the font has not all of them
            warnings.filterwarnings("ignore", message=".*Glyph .* missing from font.*")
            self.savefig(buffer, format="png", dpi=_DOTS_PER_INCH)
        return buffer.getvalue()

    def show(self, warn: bool = True) -> None:
        """In a notebook: here. At a terminal with a screen: in the viewer for pictures. Otherwise: what to do instead.

        Args:
            warn: Whether to say so where there is no screen.
        """
        if _is_notebook():
            from IPython.display import display  # here: only where it runs anyway

            display(self)  # type: ignore[no-untyped-call]
            return
        viewer = _viewer()
        if viewer is not None:
            _open(self._png(), viewer)
        elif warn:
            words = 'there is no screen to show the picture on: figure.savefig("picture.png") writes it to a file'
            warnings.warn(words, stacklevel=2)


def _is_notebook() -> bool:
    if "ipykernel" not in sys.modules or "IPython" not in sys.modules:
        return False
    shell = sys.modules["IPython"].get_ipython()
    return shell is not None and hasattr(shell, "kernel")


def _viewer() -> list[str] | None:
    """The command that opens a picture; None: there is no display."""
    if sys.platform == "darwin":
        return ["open"]
    if sys.platform == "win32":
        return ["cmd", "/c", "start", ""]
    has_screen = bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))
    found = shutil.which("xdg-open") if has_screen else None
    return None if found is None else [found]


def _open(png: bytes, viewer: list[str]) -> None:
    """From a temporary file: it has to outlive the call, since the viewer reads it when it gets to it."""
    with tempfile.NamedTemporaryFile(prefix="doral-", suffix=".png", delete=False) as file:
        file.write(png)
    subprocess.Popen([*viewer, file.name], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
