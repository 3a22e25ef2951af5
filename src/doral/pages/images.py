"""Figures as files, PNG and PDF, the same bytes from the same numbers."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping

from matplotlib.figure import Figure

PNG_DOTS_PER_INCH = 160
# Without dates and program versions, which would make every file a new one.
_METADATA: dict[str, dict[str, None]] = {
    "png": {"Software": None},
    "pdf": {"Creator": None, "Producer": None, "CreationDate": None},
}


def as_files(figures: Mapping[str, Figure]) -> dict[str, bytes]:
    """Every figure as PNG and as PDF: the content of the files by their names."""
    return {f"{name}.{kind}": as_bytes(figure, kind) for name, figure in figures.items() for kind in _METADATA}


def as_bytes(figure: Figure, kind: str) -> bytes:
    """A figure as the content of one file."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format=kind, dpi=PNG_DOTS_PER_INCH, metadata=_METADATA[kind])
    return buffer.getvalue()


def as_data(png: bytes) -> str:
    """A picture as an address that holds all of it."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"
