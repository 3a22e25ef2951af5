"""`--cluster`: who computes, where that is not this machine."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from doral.errors import InvalidValue

HELP = "Compute on a cluster: tcp://HOST:8786 (Dask), ray://HOST:10001, ray://auto, ray://local. Changes no number."
ALL_CORES = -1


def check_cluster(cluster: str | None, *, jobs: int) -> None:
    """Before anything else is done."""
    if cluster is None:
        return
    if jobs != ALL_CORES:
        raise InvalidValue("jobs", jobs, "counts workers of this machine; leave it out with --cluster, which uses all")
    from doral.simulation.workers.cluster import read_address

    read_address(cluster)


def computing_on(cluster: str | None) -> AbstractContextManager[None]:
    """As long as it lasts, several jobs are those of the cluster; without one, of this machine."""
    if cluster is None:
        return nullcontext()
    from doral.simulation.workers.cluster import joined

    return joined(cluster)
