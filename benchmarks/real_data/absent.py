"""Data that are not here."""

from __future__ import annotations


class Absent(Exception):
    """The data of a case are not in the folder."""
