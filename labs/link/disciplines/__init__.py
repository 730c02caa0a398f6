"""The queue disciplines, one file each: description, plan, and how the one becomes the other; Rust's side of each is in
emulator/model/src/queue/disciplines.

`KINDS` is put together of those of the files, so that a new discipline is a new file.
"""

from __future__ import annotations

from ewan.labs.base.modules import modules_of
from ewan.labs.link.disciplines.kind import Discipline, Kind


def _found() -> dict[str, Kind]:
    kinds: dict[str, Kind] = {}
    for module in modules_of(__name__):
        kinds |= getattr(module, "KINDS", {})
    return dict(sorted(kinds.items(), key=lambda item: item[1].place))


KINDS = _found()
"""By the word of a description."""

__all__ = ["KINDS", "Discipline", "Kind"]
