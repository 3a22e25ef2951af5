"""Live campaigns: the compiled policy driven by an event log that survives everything.

The way of a request: `campaign` (what people call) -> `requests` (checked input) -> `plan_*` (drafts of events) ->
`apply` (the engine completes them, the `fold` changes) -> `storage` (stored), all of it held together by `session`.
Reading a log takes the second half of the way: what it says are facts, and `apply` learns from them.
"""

from __future__ import annotations

import logging

# Nothing is printed unless the application asks for it: `logging.getLogger("doral").setLevel(...)`, and a handler.
logging.getLogger("doral").addHandler(logging.NullHandler())
