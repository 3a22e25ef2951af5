"""What can go wrong with a cluster, and with nothing else."""

from __future__ import annotations

from doral.errors import DoralError

GOES_ON = "what `reproduce`, `compare` and `--runs-out` have finished is kept, and the same command goes on from there"


class ClusterError(DoralError, ConnectionError):
    """A cluster does not answer, or was lost in the middle of the work."""
