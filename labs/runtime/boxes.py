"""Names of a simulated box's parts on this machine (`ewan driver simulate`), and their removal after a kill.

In: the process id of a box. Out: the names of its lab, its namespace and its directory; nothing of boxes whose
processes are gone.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import psutil

from ewan.labs.base.errors import UserError
from ewan.labs.base.reading import read_text
from ewan.labs.runtime import control, spinners
from ewan.labs.runtime.namespaces import NAMESPACES

LINK = "box"
ADDRESS = "address"
"""The file of the box's directory that has the path of its command line, as long as the command line is there."""
_NAMESPACE = re.compile(rf"ewan-simulated-([0-9]+)-{LINK}")
_FOLDER = re.compile(r"ewan-simulated-([0-9]+)-\w+")


def lab(box: int) -> str:
    """The name of the lab that a box's link is of."""
    return f"simulated-{box}"


def namespace(box: int) -> str:
    """The name of a box's network namespace."""
    return f"ewan-{lab(box)}-{LINK}"


def folder_prefix(box: int) -> str:
    """The beginning of the name of a box's directory, which is among temporary files."""
    return f"ewan-{lab(box)}-"


def remove_killed() -> list[int]:
    """Removes the spinners, namespaces, ports, directories and addresses of boxes whose processes are gone.

    Returns these boxes' process ids. Raises UserError where a namespace cannot be removed.
    """
    namespaces = _found(NAMESPACES, _NAMESPACE)
    folders = _found(Path(tempfile.gettempdir()), _FOLDER)
    killed = sorted(box for box in namespaces.keys() | folders.keys() if not psutil.pid_exists(box))
    for box in killed:
        for number in spinners.processes(lab(box)).values():
            with suppress(psutil.Error):
                process = psutil.Process(number)
                process.kill()
                process.wait(control.ENDS_S)
        if box in namespaces:
            try:
                ip("netns", "del", namespace(box))
            except UserError:
                if namespaces[box].exists():  # another `down` may have removed it meanwhile
                    raise
        if box in folders:
            _remove_folder(folders[box])
    return killed


def ip(*words: str) -> None:
    """Calls `ip`, which Ctrl-C, that a terminal sends to all, does not end half way. Raises UserError."""
    done = subprocess.run(["ip", *words], capture_output=True, text=True, start_new_session=True)
    if done.returncode:
        raise UserError(f"the simulated box: ip {' '.join(words)}: {done.stderr.strip()}")


def _found(place: Path, names: re.Pattern[str]) -> dict[int, Path]:
    """The entries of a directory that are this user's, by the box that they are of."""
    found = {}
    with suppress(FileNotFoundError):
        for path in place.iterdir():
            with suppress(FileNotFoundError):
                if (match := names.fullmatch(path.name)) and path.lstat().st_uid == os.geteuid():
                    found[int(match[1])] = path
    return found


def _remove_folder(folder: Path) -> None:
    with suppress(OSError):
        address = Path(read_text(folder / ADDRESS))
        kind = address.lstat().st_mode
        if stat.S_ISSOCK(kind) or stat.S_ISLNK(kind):
            address.unlink()
    shutil.rmtree(folder, ignore_errors=True)
