"""Directories of runs: results/<UTC>-<lab>/, one each, owned by whoever called sudo."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path

from labs.runtime.base import LabError

RESULTS = Path("results")


def make(lab: str) -> Path:
    """A new directory; runs that start in the same second get -2, -3, … LabError where none can be made."""
    stamp = datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")
    number = 1
    while True:
        directory = RESULTS / (f"{stamp}-{lab}" if number == 1 else f"{stamp}-{lab}-{number}")
        try:
            directory.mkdir(parents=True)
            return directory
        except (FileExistsError, NotADirectoryError):
            if not RESULTS.is_dir():
                raise LabError(f"{RESULTS} is no directory: results go there; move it away") from None
            number += 1
        except OSError as error:
            raise LabError(f"{directory}: {error.strerror}: run it in a directory where you may write") from None


def give_back(directory: Path) -> None:
    """Under sudo, the results belong to the user who called it."""
    if "SUDO_UID" in os.environ:
        owner = int(os.environ["SUDO_UID"]), int(os.environ["SUDO_GID"])
        for path in (RESULTS, directory, *directory.rglob("*")):
            os.chown(path, *owner)
