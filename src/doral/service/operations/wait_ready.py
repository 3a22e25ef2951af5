"""`python -m doral.service.operations.wait_ready URL SECONDS`: return when a replica is ready; fail after that long."""

from __future__ import annotations

import sys
import time
import urllib.error
import urllib.request


def wait_ready(url: str, within_s: float) -> bool:
    """Ask `/readyz` until it is well; False where the time is up."""
    until = time.monotonic() + within_s
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=5):
                return True
        except (urllib.error.URLError, OSError):
            time.sleep(0.2)
    return False


if __name__ == "__main__":
    sys.exit(0 if wait_ready(sys.argv[1], float(sys.argv[2])) else 1)
