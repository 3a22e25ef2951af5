"""Live campaigns: the compiled policy driven by an event log that survives everything.

The way of a request: `campaign` (what people call) -> `requests` (checked input) -> `plan_*` (drafts of events) ->
`apply` (the engine completes them, the `fold` changes) -> `storage` (stored), all of it held together by `session`.
Reading a log takes the second half of the way: `apply`, and a comparison.
"""
