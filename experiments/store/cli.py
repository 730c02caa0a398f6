"""The command `store`: the kept runs of the virtual clock, their verification, and their removal.

In: the store of this process. Out: a table by scenarios, or the damaged entries, or the removed ones. Exit status 0, 1
where an entry is damaged, 2 for an error that the user can correct."""

from __future__ import annotations

import dataclasses
import sys
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import click

from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.store import choice
from ewan.experiments.store.choice import EntryChoice, EntryListing
from ewan.experiments.store.entry import DamagedError, Kind
from ewan.experiments.store.store import Store
from ewan.labs.base import codec
from ewan.labs.base.codec import JsonValue, Struct
from ewan.labs.base.sheet import grid
from ewan.labs.base.units import Size, UnitError
from ewan.labs.base.units.ages import parse_age
from ewan.labs.base.units.shown import about
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import json_option, pass_context
from ewan.labs.context import STORE_VARIABLE, Context
from ewan.labs.record.experiment import DOCUMENT
from ewan.labs.runtime.base import LabError

UNREADABLE = "(damaged)"

Action = Literal["list", "verify", "prune"]


class StoreEntry(Struct, kw_only=True):
    """An entry of the store: its file, its size in bytes, the time at which it was put there (UTC), and its origin, or
    the damage of an entry that cannot be read. `moved`: the place to which `verify` moved a damaged entry."""

    key: str
    path: str
    bytes: int
    put: str
    kind: Kind | None = None
    scenario: str | None = None
    experiment: str | None = None
    name: str | None = None
    made: str | None = None
    wall_ns: int | None = None
    cpu_ns: int | None = None
    damage: str | None = None
    moved: str | None = None


class StoreEntries(Struct):
    """The entries of a store."""

    store: str
    entries: tuple[StoreEntry, ...]


class StoreVerification(Struct):
    """The number of entries whose bytes were verified, and the damaged ones among them."""

    store: str
    verified: int
    damaged: tuple[StoreEntry, ...]


class StoreRemoval(Struct):
    """The entries that were removed, and the paths of other files that were removed."""

    store: str
    removed: tuple[StoreEntry, ...]
    others: tuple[str, ...]


@click.command("store")
@click.argument("action", type=click.Choice(["list", "verify", "prune"]), default="list")
@click.option("--older-than", metavar="30d", help='entries older than this: "30d", "12h", "4w"')
@click.option("--larger-than", metavar="10GB", help="the oldest entries, until the store is no larger than this")
@click.option("--experiment", metavar="DIR|NAME", help="entries of this experiment, or of the scenario with this name")
@json_option(lambda: (StoreEntries, StoreVerification, StoreRemoval))
@guarded
@pass_context
def store_command(
    context: Context,
    action: Action,
    older_than: str | None,
    larger_than: str | None,
    experiment: str | None,
    as_json: bool,
) -> None:
    """List, verify or remove the stored results of runs of the virtual clock.

    list: a row per scenario. verify: check all bytes, and move damaged entries away; they are measured again when they
    are needed. prune: remove the entries that the options choose, and the damaged ones.

    \b
    ewan exp store
    ewan exp store verify
    ewan exp store prune --older-than 30d
    ewan exp store prune --larger-than 10GB
    """
    if context.store is None:
        raise Refused(f"{STORE_VARIABLE}=off: there is no store: leave it out, or name a directory")
    store = Store(context.store, context.environment)
    wanted = asked(older_than, larger_than, experiment)
    if action == "prune" and wanted.all:
        raise Refused("what may go? write --older-than 30d, --larger-than 10GB or --experiment NAME")
    try:
        entries = choice.chosen(listed(store), wanted)
        match action:
            case "list":
                show(context, store, entries, as_json)
            case "verify":
                sys.exit(verify(context, store, entries, as_json))
            case "prune":
                prune(context, store, entries, as_json)
    except OSError as error:
        raise LabError(f"{error.filename or store.root}: {error.strerror}: run it as who may look there") from None


def asked(older_than: str | None, larger_than: str | None, experiment: str | None) -> EntryChoice:
    """The choice that the options make; Refused for other words."""
    wanted = EntryChoice()
    if older_than is not None:
        age = parse_age(older_than)
        if age is None:
            raise Refused(f'--older-than "{older_than}": write how long ago, like "30d", "12h" or "4w"')
        wanted = dataclasses.replace(wanted, before=time.time() - age.total_seconds())
    if larger_than is not None:
        try:
            wanted = dataclasses.replace(wanted, most_bytes=Size.parse(larger_than).bytes)
        except UnitError as error:
            raise Refused(f'--larger-than "{larger_than}": {error}') from None
    if experiment is not None:
        directory = Path(experiment)
        if (directory / DOCUMENT).exists():
            keys = {entry.key for entry in Experiment.load(directory).runs if entry.key is not None}
            return dataclasses.replace(wanted, keys=keys)
        wanted = dataclasses.replace(wanted, experiment=directory.name)
    return wanted


def listed(store: Store) -> Iterator[EntryListing]:
    """All entries with their manifests."""
    for found in store.entries():
        try:
            if (manifest := store.manifest(found.key)) is not None:
                yield EntryListing(found, manifest)
        except DamagedError as error:
            yield EntryListing(found, None, str(error))


def show(context: Context, store: Store, entries: Sequence[EntryListing], as_json: bool) -> None:
    """Prints a row for each scenario."""
    if as_json:
        context.reporter.emit({"store": str(store.root), "entries": [described(each) for each in entries]})
        return
    by_scenario: dict[str, list[EntryListing]] = {}
    for each in entries:
        by_scenario.setdefault(each.manifest.origin.scenario if each.manifest else UNREADABLE, []).append(each)
    rows = [[name, *row(those)] for name, those in sorted(by_scenario.items())]
    columns = ["scenario", "runs", "labs", "size", "wall time", "CPU time", "first (UTC)", "last (UTC)"]
    if rows:
        context.reporter.console.print(grid(f"The store {store.root}", columns, [*rows, ["all", *row(entries)]]))
    else:
        context.reporter.tell(f"{store.root}: nothing is in the store")
    if leavings := store.leavings():
        size = about(sum(path.stat().st_size for path in leavings), "size", 3)
        context.reporter.tell(f"{len(leavings)} files that are no entries, {size}: ewan exp store prune removes them")


def row(entries: Sequence[EntryListing]) -> list[str]:
    """The cells of a row for several entries: the numbers of runs and labs, their size, and the time that measuring
    them took."""
    origins = [each.manifest.origin for each in entries if each.manifest]
    seconds = [each.found.seconds for each in entries]
    return [
        str(sum(origin.kind == "run" for origin in origins)),
        str(sum(origin.kind == "certificate" for origin in origins)),
        about(sum(each.found.bytes for each in entries), "size", 3),
        about(sum(origin.wall_ns for origin in origins), "time", 3),
        about(sum(origin.cpu_ns for origin in origins), "time", 3),
        *(f"{datetime.fromtimestamp(each, UTC):%Y-%m-%d %H:%M}" for each in (min(seconds), max(seconds))),
    ]


def verify(context: Context, store: Store, entries: Sequence[EntryListing], as_json: bool) -> int:
    """Looks at all bytes; the exit status."""
    damaged = []
    with context.reporter.progress("verifying the store") as progress:
        for number, each in enumerate(entries):
            progress.tick(f"verifying the store: {number} of {len(entries)} entries")
            try:
                store.verify(each.found.key)
            except DamagedError as error:
                aside = store.set_aside(each.found.key)
                damaged.append({**described(each), "damage": str(error), "moved": str(aside) if aside else None})
    if as_json:
        context.reporter.emit({"store": str(store.root), "verified": len(entries), "damaged": damaged})
        return 1 if damaged else 0
    for each_damaged in damaged:
        moved = f"moved to {each_damaged['moved']}" if each_damaged["moved"] else "it cannot be moved away"
        context.reporter.tell(f"warning: {each_damaged['path']}: {each_damaged['damage']}: {moved}")
    context.reporter.console.print(f"{len(entries) - len(damaged)} of {len(entries)} entries are whole")
    return 1 if damaged else 0


def prune(context: Context, store: Store, entries: Sequence[EntryListing], as_json: bool) -> None:
    """Removes entries and files that are none; LabError for the first that cannot be removed."""
    leavings = store.leavings()
    size = sum(each.found.bytes for each in entries) + sum(path.stat().st_size for path in leavings)
    try:
        for each in entries:
            store.remove(each.found.key)
        for path in leavings:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise LabError(f"{error.filename}: {error.strerror}: run it as who may write there") from None
    if as_json:
        removed = [described(each) for each in entries]
        context.reporter.emit(
            {"store": str(store.root), "removed": removed, "others": [str(path) for path in leavings]}
        )
        return
    more = f" and {len(leavings)} files that were none" if leavings else ""
    context.reporter.console.print(f"removed {len(entries)} entries{more}, {about(size, 'size', 3)}")


def described(each: EntryListing) -> dict[str, JsonValue]:
    """An entry as JSON has it."""
    put = datetime.fromtimestamp(each.found.seconds, UTC).isoformat(timespec="seconds")
    told = codec.data_of(each.manifest.origin) if each.manifest else {"damage": each.damage}
    return {"key": each.found.key, "path": str(each.found.path), "bytes": each.found.bytes, "put": put, **told}
