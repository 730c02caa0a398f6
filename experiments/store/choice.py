"""Choice of entries of a store: by their age, by their experiment, by the size of the store. Pure.

In: entries with their manifests. Out: the chosen ones. By the store's size the oldest are chosen, so many that the
others take no more."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from ewan.experiments.store.entry import Manifest
from ewan.experiments.store.store import StoredEntry


@dataclass(frozen=True, slots=True)
class EntryListing:
    """An entry with its manifest; `damage`: in words, why there is none."""

    found: StoredEntry
    manifest: Manifest | None
    damage: str = ""


@dataclass(frozen=True, slots=True)
class EntryChoice:
    """Conditions on entries; without any, all are chosen. `before`: seconds since 1970 by which they were put in.
    `experiment`: the name of a scenario, or of an experiment's directory; `keys`: those of the runs of an experiment.
    `most_bytes`: the size of the store."""

    before: float | None = None
    experiment: str | None = None
    keys: Collection[str] | None = None
    most_bytes: int | None = None

    @property
    def all(self) -> bool:
        """Return whether there is no condition."""
        return self == EntryChoice()


def chosen(entries: Iterable[EntryListing], wanted: EntryChoice) -> list[EntryListing]:
    """The entries that meet all conditions, the oldest first."""
    every = sorted(entries, key=lambda each: (each.found.seconds, each.found.key))
    result = [each for each in every if _takes(each, wanted)]
    if wanted.most_bytes is None:
        return result
    excess = sum(each.found.bytes for each in every) - wanted.most_bytes
    return result[: _enough(result, excess)]


def _takes(each: EntryListing, wanted: EntryChoice) -> bool:
    if wanted.before is not None and each.found.seconds > wanted.before:
        return False
    if wanted.keys is not None:
        return each.found.key in wanted.keys
    if wanted.experiment is not None:
        origin = each.manifest.origin if each.manifest else None
        return origin is not None and wanted.experiment in (origin.experiment, origin.scenario)
    return True


def _enough(entries: Sequence[EntryListing], excess: int) -> int:
    """The number of first entries that have so many bytes together."""
    number = 0
    while excess > 0 and number < len(entries):
        excess -= entries[number].found.bytes
        number += 1
    return number
