"""For those who write policies: checks that any policy should pass."""

from __future__ import annotations

from doral.testing.policy_checks import CHECKS, PolicyCheckFailed, check_policy

__all__ = ["CHECKS", "PolicyCheckFailed", "check_policy"]
