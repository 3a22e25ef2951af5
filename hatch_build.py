"""A wheel that carries prepared code is for one platform; without such code it is for all."""

from __future__ import annotations

import sysconfig
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class PlatformOfPreparedCode(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        prepared = Path(self.root, "src/doral/compiled/prepared")
        if version == "standard" and any(prepared.glob("*.code")):
            platform = sysconfig.get_platform().replace("-", "_").replace(".", "_")
            build_data["pure_python"] = False
            build_data["tag"] = f"py3-none-{platform}"
            build_data["artifacts"].append("src/doral/compiled/prepared/*.code")
