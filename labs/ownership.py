"""Whose files are when sudo runs this program.

In: paths that it made, the environment. Out: nothing; under sudo they belong to the user who called it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path


def give_back(paths: Iterable[Path], environment: Mapping[str, str]) -> None:
    """Under sudo, what was made belongs to the user who called it; OSError where that cannot be done."""
    user, group = environment.get("SUDO_UID", ""), environment.get("SUDO_GID", "")
    if os.geteuid() == 0 and user.isdigit() and group.isdigit():
        for path in paths:
            os.chown(path, int(user), int(group))
