"""Scenarios as environments of Gymnasium, for agents of reinforcement learning.

    import gymnasium
    import doral.gym

    env = gymnasium.make("doral/DiversePareto-v0")
    envs = gymnasium.make_vec("doral/DiversePareto-v0", num_envs=64)
    mine = gymnasium.make("doral/Scenario-v0", scenario=my_scenario)

Importing this module makes the names known; Gymnasium does it for those who write
`gymnasium.make("doral.gym:doral/DiversePareto-v0")`. `import doral` alone needs no Gymnasium, and knows nothing of it.
"""

from __future__ import annotations

try:
    import gymnasium
except ModuleNotFoundError as error:
    if error.name != "gymnasium":
        raise
    raise ModuleNotFoundError("doral.gym needs Gymnasium: pip install 'doral[gym]'", name="gymnasium") from None

from doral.gym.environment import ANY, ScenarioEnv, environment_name, environments
from doral.gym.episode import Layout

__all__ = ["Layout", "ScenarioEnv", "environment_name", "environments"]

for _name, _scenario in [*environments().items(), (ANY, None)]:
    gymnasium.register(_name, entry_point="doral.gym.environment:ScenarioEnv", kwargs={"scenario": _scenario})
