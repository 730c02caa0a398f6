"""Finds the program of a driver's name and the abilities of its models; neither the program nor a device is started.

In: a word of a description: the name of a driver of an extra (`ewan.extra`), or a path. Out: the
models that the file beside it describes, and the words that start it. A driver of one's own has the file
`PROGRAM.driver.json` beside it, which `ewan driver describe PROGRAM` prints.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

from ewan import extra
from ewan.labs.base.product import IMPORTED_FROM
from ewan.labs.base.reading import read_text
from ewan.labs.base.wording import nearest
from ewan.labs.hardware.abilities import ENDING, DeviceModel, read_models


def names() -> list[str]:
    """The names of the drivers that are installed."""
    return sorted(extra.installed().drivers)


def is_path(driver: str) -> bool:
    """Return whether a word is the path of a program, and not a name."""
    return "/" in driver


def models(driver: str, read: Callable[[str], str] | None = None) -> dict[str, DeviceModel]:
    """The models of a driver with their abilities; ValueError in one line. `read` returns the text of a file that is
    named by a path."""
    if not is_path(driver):
        file = f"{driver}{ENDING}"
        return read_models(Path(str(_module(driver).__file__)).with_name(file).read_bytes(), file)
    file = f"{driver}{ENDING}"
    try:
        text = read_text(file) if read is None else read(file)
    except OSError as error:
        why = error.strerror or "cannot be read"
        raise ValueError(
            f"{file}: {why}: it says what the devices can; ewan driver describe {driver} prints it"
        ) from None
    return read_models(text.encode(), file)


def argv(driver: str) -> tuple[list[str], Path]:
    """The words that start a driver, and in which directory."""
    if is_path(driver):
        return [str(Path(driver).absolute())], Path("/")
    return [sys.executable, "-m", _module(driver).__name__], IMPORTED_FROM


def _module(driver: str) -> ModuleType:
    """The module of a driver that is installed; ValueError in one line where there is none of this name."""
    load = extra.installed().drivers.get(driver)
    if load is None:
        raise ValueError(f"there is no such driver, {nearest(driver, names())}, or the path of a program")
    return load()
