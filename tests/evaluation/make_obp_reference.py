"""What Open Bandit Pipeline says of some logs: makes `obp_reference.json`, against which our estimators are tested.

    python -m venv obp-env
    obp-env/bin/pip install "numpy<2" pandas scikit-learn scipy pyyaml tqdm matplotlib seaborn mypy_extensions
    obp-env/bin/pip install --no-deps obp
    obp-env/bin/python tests/evaluation/make_obp_reference.py

Its estimators do not need PyTorch for what is compared here, but import it: an empty module stands in for it.
"""

from __future__ import annotations

import importlib
import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np

SEEDS = (0, 1, 2, 3)
ROWS = 500
N_CONTEXTS, N_ARMS = 3, 4


def inputs(seed: int) -> dict[str, Any]:
    """A log without censoring, a policy, and what is expected of every arm in every context."""
    rng = np.random.default_rng(seed)
    context = rng.integers(0, N_CONTEXTS, ROWS)
    logging = rng.dirichlet(np.ones(N_ARMS), N_CONTEXTS)
    arm = (rng.random(ROWS)[:, None] > np.cumsum(logging, axis=1)[context]).sum(axis=1).clip(0, N_ARMS - 1)
    return {
        "context": context,
        "arm": arm,
        "reward": rng.normal(1.0, 0.5, ROWS) * (rng.random(ROWS) < 0.3),
        "probability": logging[context, arm],
        "policy": rng.dirichlet(np.ones(N_ARMS), N_CONTEXTS),
        "expected": rng.uniform(0.0, 1.0, (N_CONTEXTS, N_ARMS)),
    }


def _without_torch() -> Any:
    """The estimators of the pipeline, with an empty module in place of PyTorch."""

    class Stub(types.ModuleType):
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return type(name, (), {})

    for name in ("torch", "torch.nn", "torch.nn.functional", "torch.optim", "torch.utils", "torch.utils.data"):
        stub = sys.modules[name] = Stub(name)
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, stub)
    return importlib.import_module("obp.ope")


def main() -> None:
    ope = _without_torch()
    version = importlib.import_module("obp").__version__
    estimators = {
        "ips": ope.InverseProbabilityWeighting(),
        "snips": ope.SelfNormalizedInverseProbabilityWeighting(),
        "dr": ope.DoublyRobust(),
    }
    said = []
    for seed in SEEDS:
        log = inputs(seed)
        context = log["context"]
        known = {
            "reward": log["reward"],
            "action": log["arm"],
            "pscore": log["probability"],
            "position": np.zeros(ROWS, dtype=int),
            "action_dist": log["policy"][context][:, :, None],
            "estimated_rewards_by_reg_model": log["expected"][context][:, :, None],
        }
        values = {name: float(one.estimate_policy_value(**known)) for name, one in estimators.items()}
        said.append({"seed": seed, **values})
    whole = {"made_with": {"obp": version, "numpy": np.__version__}, "rows": ROWS, "values": said}
    Path(__file__).with_name("obp_reference.json").write_text(json.dumps(whole, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
