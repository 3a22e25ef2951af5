"""Forks while other threads work. A child has only the thread that forked: what the others held is never released.

A lock of the whole process is held across a fork, which waits until it is released. What belongs to an object
is made anew in the child.
"""

from __future__ import annotations

import os
import weakref
from threading import RLock
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from _thread import RLock as Lock


class Renewable(Protocol):
    """Something with locks, connections or files that a child cannot share."""

    def renew(self) -> None:
        """Called in a child, before anything else is done there."""


_renewed: weakref.WeakSet[Renewable] = weakref.WeakSet()


def renew_in_child(one: Renewable) -> None:
    """From now on, as long as the object lives."""
    _renewed.add(one)


def _renew_all() -> None:
    for one in list(_renewed):
        one.renew()


def lock_across_forks() -> Lock:
    """A lock that no other thread has when a process is forked.

    Forks take such locks in the reverse order of their making: a thread that takes two takes the younger one first.
    """
    lock = RLock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)
    return lock


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_renew_all)
