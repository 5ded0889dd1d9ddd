"""The build hook of wheels: builds the gateway's dashboard, which is shipped and not committed."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SOURCE = Path("services", "gateway", "dashboard")
WITHOUT = "WMS_WITHOUT_DASHBOARD"
"""The environment variable with which wheels are built without the dashboard."""


class DashboardBuild(BuildHookInterface[Any]):
    """Builds the dashboard by npm before a wheel is packed; not for an editable installation."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build it below the source tree and have the wheel contain it."""
        if self.target_name != "wheel" or version == "editable" or os.environ.get(WITHOUT):
            return
        source = Path(self.root, SOURCE)
        for words in (["ci"], ["run", "build"]):
            subprocess.run([_npm(), *words], cwd=source, check=True)
        for each in (source / "dist").rglob("*"):
            if each.is_file():
                build_data["force_include"][str(each)] = str(each.relative_to(self.root))


def _npm() -> str:
    """Return the path of npm. RuntimeError: there is none."""
    if found := shutil.which("npm"):
        return found
    raise RuntimeError(
        f"the dashboard is built by npm, which is not there: install Node.js, or set {WITHOUT}=1"
    )
