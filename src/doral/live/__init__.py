"""Live campaigns: decisions that are stored before they are answered.

Read in this order: `events` (what can happen, and how it is stored), `kinds` (a chapter for each: the request, the
events that follow, how they are applied), `state` (what a log adds up to), `runtime` (`session`: lock, catch up,
validate, apply, append, commit), `views` and `page` (what people see), `storage` (SQLite, PostgreSQL, memory).
"""

from __future__ import annotations

import logging

# Nothing is printed unless the application asks for it: `logging.getLogger("doral").setLevel(...)`, and a handler.
logging.getLogger("doral").addHandler(logging.NullHandler())
