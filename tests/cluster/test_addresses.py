"""What is wrong with a cluster is said in a line, and soon."""

from __future__ import annotations

import importlib.util
import platform
import socket
import threading
from typing import Any

import pytest
from typer.testing import CliRunner

import doral
from doral.cli.app import app
from doral.simulation.workers import cluster as joining
from doral.simulation.workers.cluster import ClusterError, joined, read_address
from doral.simulation.workers.tasks import difference, versions


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("tcp://scheduler", "tcp://scheduler:8786"),
        ("tcp://[::1]:9", "tcp://[::1]:9"),
        ("ray://head", "ray://head:10001"),
        ("ray://local", "ray://local"),
    ],
)
def test_addresses(given: str, meant: str) -> None:
    assert str(read_address(given)) == meant


@pytest.mark.parametrize(
    "given",
    [
        "",
        "scheduler:8786",
        "tcp://",
        "http://a:1",
        "tcp://a:b",
        "tcp://a:1/x",
        "tcp://u@a",
        "tcp://a:0",
        "tcp://a b",
        "ray://local:3",
    ],
)
def test_malformed_addresses_are_refused_before_the_work(given: str) -> None:
    done = CliRunner().invoke(app, ["simulate", "stress/tiny", "--cluster", given])
    assert done.exit_code == 2
    assert "must be tcp://host:8786 for Dask" in done.output


@pytest.mark.parametrize(
    "command",
    [["simulate", "stress/tiny"], ["experiment", "reproduce"], ["experiment", "compare"], ["plan", "log.csv"]],
)
def test_jobs_of_this_machine_do_not_go_with_a_cluster(command: list[str]) -> None:
    done = CliRunner().invoke(app, [*command, "--cluster", "tcp://a", "--jobs", "2"])
    assert done.exit_code == 2
    assert "leave it out with --cluster" in done.output


@pytest.mark.parametrize(("given", "extra"), [("tcp://a", "doral[dask]"), ("ray://a", "doral[ray]")])
def test_an_extra_that_is_not_installed_is_named(given: str, extra: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def none(name: str, package: Any = None) -> None:
        return None

    monkeypatch.setattr(importlib.util, "find_spec", none)
    with pytest.raises(doral.InvalidValue) as refused:
        read_address(given)
    assert f"pip install '{extra}'" in str(refused.value)


@pytest.mark.parametrize("kind", ["tcp", "ray"])
def test_nobody_there(kind: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # and does not listen
        done = CliRunner().invoke(
            app, ["simulate", "stress/tiny", "--cluster", f"{kind}://127.0.0.1:{taken.getsockname()[1]}"]
        )
    assert done.exit_code == 1
    assert "is it running" in done.output


@pytest.mark.parametrize("greeting", [b"", b"\x01", b"SSH-2.0-OpenSSH_9\r\n", (9).to_bytes(8, "little") + b"short"])
def test_somebody_who_is_no_scheduler(greeting: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(joining, "ANSWER_S", 0.3)
    with socket.create_server(("127.0.0.1", 0)) as other:
        kept: list[socket.socket] = []

        def greet() -> None:
            kept.append(other.accept()[0])
            kept[0].sendall(greeting)

        speaker = threading.Thread(target=greet)
        speaker.start()
        with (
            pytest.raises(ClusterError, match="no Dask scheduler"),
            joined(f"tcp://127.0.0.1:{other.getsockname()[1]}"),
        ):
            pass
        speaker.join()
        kept[0].close()


def test_workers_that_would_round_otherwise_are_told_apart() -> None:
    ours = versions()
    theirs = {**ours, "processor": "aarch64", "C library": "glibc 2.17"}
    said = difference(theirs, ours)
    assert f"processor aarch64 there, {platform.machine()} here; C library glibc 2.17 there, " in said
    assert not difference(ours, versions())
