"""The queue disciplines, one file each: description, plan, and how the one becomes the other; Rust's side of each is in
emulator/model/src/queue.

`KINDS` is put together of those of the files, so that a new discipline is a new file.
"""

from __future__ import annotations

import importlib
import pkgutil

from ewan.labs.link.disciplines.kind import Discipline, Kind


def _found() -> dict[str, Kind]:
    kinds: dict[str, Kind] = {}
    for module in pkgutil.iter_modules(__path__):
        kinds |= getattr(importlib.import_module(f"{__name__}.{module.name}"), "KINDS", {})
    return dict(sorted(kinds.items(), key=lambda item: item[1].place))


KINDS = _found()
"""By the word of a description."""

__all__ = ["KINDS", "Discipline", "Kind"]
