"""Clusters by address: `tcp://host:8786` is a Dask scheduler, `ray://host:10001` a Ray head node."""

from __future__ import annotations

import importlib.util
import logging
import socket
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from doral.errors import DoralError, InvalidValue

if TYPE_CHECKING:
    from doral.simulation.workers.tasks import Packed

GOES_ON = "what `reproduce`, `compare` and `--runs-out` have finished is kept, and the same command goes on from there"


class ClusterError(DoralError, ConnectionError):
    """A cluster does not answer, or was lost in the middle of the work."""


ANSWER_S = 10.0  # within which a cluster must respond
STRANDED_S = 60.0  # so long without a single worker, and the work is given up
LOOK_S = 5.0  # how often it is asked whether a worker is left


class Engine(Protocol):
    """Tasks that run elsewhere. Handles are the engine's own, and can be hashed.

    joblib's own ways to Dask and Ray lose what is asked here: the one waits for ever when a task cannot be unpacked or
    its workers keep dying, the other fails with the first worker that dies, and gives no result before the last.
    """

    def workers(self) -> int:
        """How many tasks can run at once, now."""

    def share(self, packed: Packed) -> Any:
        """What all tasks need; each worker fetches it once."""

    def submit(self, shared: Any, pieces: bytes) -> Any:
        """One task, packed, which is tried again when its worker dies."""

    def first_done(self, handles: Sequence[Any]) -> Sequence[Any]:
        """Wait for at least one."""

    def result(self, handle: Any) -> bytes:
        """What a finished task found, as `packing.work` says it, or the error that it raised."""

    def forget(self, handles: Iterable[Any]) -> None:
        """Cancel these tasks."""


def active() -> Engine | None:
    """That of `joblib.parallel_config("dask")` or `("ray")`; None: joblib computes by itself."""
    if "joblib" not in sys.modules:  # it cannot be configured then
        return None
    from joblib.parallel import get_active_backend

    backend, _ = get_active_backend()
    kind = type(backend).__name__
    if kind == "DaskDistributedBackend":
        from doral.simulation.workers.dask_engine import OnDask

        return OnDask(backend.client)
    if kind == "RayBackend":
        from doral.simulation.workers.ray_engine import OnRay

        return OnRay()
    return None


MOST_GREETING = 2**16  # bytes with which a Dask scheduler begins; it takes some hundred
PORTS = {"tcp": 8786, "ray": 10001}
RAY_NEAR = ("auto", "local")
_EXTRAS = {"tcp": ("distributed", "Dask", "dask"), "ray": ("ray", "Ray", "ray")}
_REMEDY = (
    "must be tcp://host:8786 for Dask, ray://host:10001 for Ray, ray://auto for the Ray of this machine, or "
    "ray://local for one that is started here"
)


_TOKEN = (
    "it may ask for a token: set RAY_AUTH_MODE=token here, and RAY_AUTH_TOKEN to that of its ~/.ray/auth_token; and "
    "both sides need the same Ray and Python"
)
_NO_RAY = "is there one on this machine? ray start --head starts it, and ray://local one for this command alone"


class Address(NamedTuple):
    """Where a cluster is."""

    kind: str
    host: str
    port: int

    @property
    def is_near(self) -> bool:
        """Whether Ray is to find or start it."""
        return self.kind == "ray" and self.host in RAY_NEAR

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.kind}://{host}" if self.is_near else f"{self.kind}://{host}:{self.port}"


def read_address(given: str) -> Address:
    """Complain about one that cannot be right, and about an engine that is not installed.

    >>> str(read_address("tcp://scheduler"))
    'tcp://scheduler:8786'
    """
    try:
        parts = urlsplit(given)
        host, port = parts.hostname, parts.port
    except ValueError:
        raise InvalidValue("cluster", given, _REMEDY) from None
    has_more = bool(parts.path.strip("/") or parts.query or parts.fragment or parts.username or parts.password)
    is_odd = any(letter.isspace() or not letter.isprintable() for letter in given)
    is_odd = is_odd or port == 0 or (parts.scheme == "ray" and host in RAY_NEAR and port is not None)
    if parts.scheme not in PORTS or not host or is_odd or has_more:
        raise InvalidValue("cluster", given, _REMEDY)
    module, name, extra = _EXTRAS[parts.scheme]
    if importlib.util.find_spec(module) is None:
        raise InvalidValue("cluster", given, f"needs {name}: pip install 'doral[{extra}]'")
    return Address(parts.scheme, host, port or PORTS[parts.scheme])


@contextmanager
def joined(given: str) -> Iterator[None]:
    """Compute on the cluster, as long as the block lasts, what asks for several jobs."""
    address = read_address(given)
    if not address.is_near:
        _reach(address)
    with _with_dask(address) if address.kind == "tcp" else _with_ray(address):
        yield


def _reach(address: Address) -> None:
    """Check that a cluster responds: engines try for a long time, and say little."""
    try:
        with socket.create_connection((address.host, address.port), timeout=ANSWER_S) as found:
            # A Dask scheduler speaks first; its client would wait for ever for another server.
            if address.kind == "tcp" and not _speaks(found):
                raise ClusterError(f"cluster {address}: what answers there is no Dask scheduler; is that its port?")
    except ClusterError:
        raise
    except TimeoutError:
        raise ClusterError(f"cluster {address}: no answer within {ANSWER_S:.0f} s; is it running?") from None
    except OSError as error:
        why = error.strerror or error
        raise ClusterError(f"cluster {address}: {why}; is it running, and is that its port?") from None


def _speaks(found: socket.socket) -> bool:
    """Whether a whole greeting comes: its length in eight bytes, then so many. Others speak first, too (SSH, mail)."""
    found.settimeout(ANSWER_S)
    try:
        with found.makefile("rb") as said:
            length = int.from_bytes(said.read(8), "little")
            return 0 < length <= MOST_GREETING and len(said.read(length)) == length
    except OSError:
        return False


@contextmanager
def _with_dask(address: Address) -> Iterator[None]:
    import joblib
    from distributed import Client

    try:
        client = Client(str(address), timeout=ANSWER_S, set_as_default=False)
    except (OSError, ValueError, ImportError) as error:  # ImportError: the two speak of things that one does not have
        why = f"what answers there is no Dask scheduler that this one understands ({_line(error)})"
        raise ClusterError(f"cluster {address}: {why}") from error
    log = logging.getLogger("distributed.client")
    level = log.level
    log.setLevel(logging.CRITICAL)  # of a scheduler that is gone the error below tells, in one line instead of thirty
    try:
        try:
            client.wait_for_workers(1, timeout=ANSWER_S)
        except TimeoutError:
            why = f"it has no worker, and none came within {ANSWER_S:.0f} s; start some: dask worker {address}"
            raise ClusterError(f"cluster {address}: {why}") from None
        with joblib.parallel_config("dask", client=client):
            yield
    finally:
        client.close(timeout=ANSWER_S)
        log.setLevel(level)


@contextmanager
def _with_ray(address: Address) -> Iterator[None]:
    import joblib
    import ray
    from ray.util.joblib import register_ray

    from doral.simulation.workers.ray_engine import start

    if ray.is_initialized():
        raise InvalidValue("cluster", str(address), "this process has joined a Ray already; use that one, or leave it")
    try:
        start(None if address.host == "local" else "auto" if address.is_near else str(address))
    except (OSError, RuntimeError, ValueError) as error:
        remedy = _NO_RAY if isinstance(error, ConnectionError) and address.is_near else _TOKEN
        raise ClusterError(f"cluster {address}: Ray cannot be joined there ({_line(error)}); {remedy}") from error
    try:
        register_ray()
        with joblib.parallel_config("ray"):
            yield
    finally:
        ray.shutdown()


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__
