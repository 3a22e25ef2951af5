"""The peers that there are, and an environment for each, in which DORAL is not installed."""

from __future__ import annotations

import ast
import hashlib
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = HERE.parents[1] / "build" / "peers"
# One thread each, as DORAL's own figures: two peers play side by side on two cores.
ONE_THREAD = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR", "NUMBA")}


@dataclass(frozen=True, kw_only=True)
class Peer:
    """A folder of this one; what its adapter says is read without running it: its library is not here."""

    folder: Path
    name: str
    package: str
    policies: dict[str, str]  # from name to how the library is used
    timed: str | None
    why_not: str = ""

    @property
    def key(self) -> str:
        return self.folder.name

    @property
    def digest(self) -> str:
        """Of all that its figures depend on, beside the tapes."""
        found = hashlib.sha256()
        for path in (*sorted(self.folder.glob("*")), HERE / "play.py", HERE / "plain.py"):
            if path.is_file():
                found.update(path.read_bytes())
        return found.hexdigest()[:12]

    @property
    def version(self) -> str:
        """Of its package, as pinned."""
        for line in _lines(self.folder / "requirements.txt"):
            name, _, version = line.partition("==")
            if name.lower().replace("_", "-") == self.package.lower().replace("_", "-"):
                return version.strip()
        return ""

    @property
    def python(self) -> Path:
        return BUILD / self.key / "bin" / "python"


def peers(folder: Path = HERE) -> list[Peer]:
    """All of them, by name."""
    found = [_read(path.parent) for path in folder.glob("*/adapter.py")]
    found += [_absent(path.parent) for path in folder.glob("*/not_installed") if not _has(path.parent, "adapter.py")]
    return sorted(found, key=lambda peer: peer.name.lower())


def _has(folder: Path, name: str) -> bool:
    return (folder / name).exists()


def _absent(folder: Path) -> Peer:
    why = _why_not(folder)
    return Peer(folder=folder, name=folder.name, package=folder.name, policies={}, timed=None, why_not=why)


def _why_not(folder: Path) -> str:
    return " ".join(" ".join(_lines(folder / "not_installed")).split()).rstrip(".")


def _read(folder: Path) -> Peer:
    tree = ast.parse((folder / "adapter.py").read_text())
    values: dict[str, ast.expr] = {}
    for node in tree.body:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    values[target.id] = node.value
                elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    names = [one.id for one in target.elts if isinstance(one, ast.Name)]
                    values.update(zip(names, node.value.elts, strict=True))
    says = {node.name: ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.ClassDef)}
    listed = values["POLICIES"]
    if not isinstance(listed, ast.Dict):
        raise SystemExit(f"{folder.name}/adapter.py: POLICIES must be written as a dict of names and classes")
    policies = {
        str(ast.literal_eval(name)): " ".join(says.get(getattr(maker, "id", ""), "").split())
        for name, maker in zip(listed.keys, listed.values, strict=True)
        if name is not None
    }
    return Peer(
        folder=folder,
        name=ast.literal_eval(values["PEER"]),
        package=ast.literal_eval(values["PACKAGE"]),
        policies=policies,
        timed=ast.literal_eval(values["SPEED"]) if "SPEED" in values else None,
        why_not=_why_not(folder),
    )


def install(peer: Peer) -> str:
    """Make its environment, unless it is there as pinned; returns why that cannot be, or nothing."""
    if peer.why_not:
        return peer.why_not
    interpreter = _interpreter(peer)
    if interpreter is None:
        return f"needs Python {' or '.join(_versions(peer))}, which is not on this machine"
    folder, pins = BUILD / peer.key, peer.folder / "requirements.txt"
    made, wanted = folder / ".made", f"{interpreter}\n{pins.read_text()}"
    if made.exists() and made.read_text() == wanted:
        return ""
    shutil.rmtree(folder, ignore_errors=True)
    log = BUILD / f"{peer.key}.log"
    BUILD.mkdir(parents=True, exist_ok=True)
    # Pins are complete. Bytecode is made when a module is first imported: most of what comes along never is.
    options = ["--quiet", "--disable-pip-version-check", "install", "--no-compile", "--no-deps"]
    pip = [str(peer.python), "-m", "pip", *options]
    with log.open("w") as file:
        for command in ([interpreter, "-m", "venv", str(folder)], [*pip, "--requirement", str(pins)]):
            if subprocess.run(command, stdout=file, stderr=subprocess.STDOUT, check=False).returncode:
                return f"did not install: {_last_error(log)}"
    made.write_text(wanted)
    return ""


def _last_error(log: Path) -> str:
    lines = [line.strip() for line in log.read_text().splitlines() if line.strip()]
    errors = [line for line in lines if line.lower().startswith("error")] or lines or ["no word why"]
    return errors[0][:160]


def _versions(peer: Peer) -> list[str]:
    return (peer.folder / "python").read_text().split() if _has(peer.folder, "python") else []


def _interpreter(peer: Peer) -> str | None:
    """The running one, unless the peer needs another."""
    base = str(getattr(sys, "_base_executable", sys.executable))
    versions = _versions(peer)
    running = f"{sys.version_info[0]}.{sys.version_info[1]}"
    if not versions or running in versions:
        return base
    return next((found for version in versions if (found := shutil.which(f"python{version}"))), None)


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def environment() -> dict[str, str]:
    """For a process of a peer."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "DORAL"))}
    return kept | ONE_THREAD
