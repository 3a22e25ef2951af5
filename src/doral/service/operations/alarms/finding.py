"""What a rule has found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Finding:
    """Something that somebody should look after.

    Attributes:
        rule: Its name.
        subject: What it is about, such as an arm; empty: the campaign.
        words: What is wrong, and what to do.
    """

    rule: str
    subject: str
    words: str
