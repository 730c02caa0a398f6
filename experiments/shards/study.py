"""A study: the directory that all shards of a scenario's runs share, and `ewan exp collect` reads.

In: a scenario and the options of its runs. Out: results/NAME-KEY/ with scenario.yaml and settings.json, shards/ with
the outcomes of each shard's runs, rounds.json with the further runs that a stop rule wanted. Each file is replaced in
one step. A shard writes only its own record; only `ewan exp collect` writes rounds.json."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import orjson

from ewan.experiments.engine import preparation, source
from ewan.experiments.engine.experiment import Job
from ewan.experiments.shards.share import Shard
from ewan.generator.scenario import Runs, Scenario
from ewan.labs.base import codec, writing
from ewan.labs.base.codec import Document, Struct
from ewan.labs.base.product import RESULTS
from ewan.labs.base.reading import read_bytes
from ewan.labs.record.experiment import Status
from ewan.labs.runtime.base import LabError

AS_WHO_MAY = "run it as who may write there"
"""The remedy where this user may not write into the directory that shards share."""
SHARDS, ROUNDS = "shards", "rounds.json"
_DIGITS = 12


class RunOutcome(Struct):
    """The outcome of a run. `stored`: it was in the store already, or is there now."""

    number: int
    key: str | None
    status: Status
    error: str | None
    stored: bool


class Record(Document, tag="ewan-shard/1"):
    """A shard's own record. `kernel` and `binary`: SHA-256 of the programs that executed its runs; `machine`: its
    name."""

    shard: str
    kernel: str
    binary: str
    unverified: bool
    machine: str
    started: str
    ended: str
    runs: tuple[RunOutcome, ...]


class FurtherRun(Struct):
    """A run that a stop rule wanted beside those of the scenario."""

    number: int
    parameters: Mapping[str, str | int]
    seed: int


class Rounds(Document, tag="ewan-rounds/1"):
    """rounds.json: the further runs, and how many there were after each round."""

    ends: tuple[int, ...]
    runs: tuple[FurtherRun, ...]


class Study:
    """A scenario's runs in a directory of their own, which need not be there yet."""

    def __init__(
        self, directory: Path, scenario: Scenario, scale: str | None, settings: Mapping[str, str], seeds: int | None
    ) -> None:
        self.directory = directory
        self.scenario, self.scale, self.settings, self.seeds = scenario, scale, settings, seeds
        self.runs: Runs = scenario.runs(settings, scale, seeds)

    @classmethod
    def of_scenario(
        cls, scenario: Scenario, scale: str | None, settings: Mapping[str, str], seeds: int | None
    ) -> Study:
        """The study of a scenario in results/; the same words, the same directory, on any machine."""
        asked = {"scale": scale, "settings": dict(settings), "seeds": seeds}
        named = hashlib.sha256(orjson.dumps([scenario.text, asked], option=orjson.OPT_SORT_KEYS)).hexdigest()
        return cls(RESULTS / f"{scenario.name}-{named[:_DIGITS]}", scenario, scale, settings, seeds)

    @classmethod
    def of_directory(cls, directory: Path) -> Study:
        """The study in a directory; LabError where there is none."""
        if not (directory / SHARDS).is_dir():
            raise LabError(f"{directory}: there are no shards: name the directory that ewan run --shard says")
        found = source.kept(directory, ": run a shard again")
        return cls(directory, found.scenario, found.scale, found.settings, found.seeds)

    def begin(self, files: Mapping[str, bytes]) -> None:
        """Makes the directory, with the files from which the scenario is read again. Raises OSError."""
        (self.directory / SHARDS).mkdir(parents=True, exist_ok=True)
        for name, content in files.items():
            if not (self.directory / name).exists():
                writing.write(self.directory / name, content)

    @property
    def total(self) -> int:
        """The number of runs, with those of all rounds so far."""
        return len(self.runs) + len(self.rounds().runs)

    def jobs(self, numbers: Sequence[int] | None = None) -> Iterator[Job]:
        """All runs, or those of these numbers, each made and checked when it is asked for."""
        further = [each for each in self.rounds().runs if numbers is None or each.number in numbers]
        own = None if numbers is None else [number for number in numbers if number <= len(self.runs)]
        if own is None or own:
            yield from preparation.jobs(self.runs, True, own)
        for each in further:
            yield preparation.repeated(self.runs.of(dict(each.parameters), each.number, each.seed), virtual=True)

    def rounds(self) -> Rounds:
        """The rounds that stop rules wanted so far; LabError where the file is damaged."""
        path = self.directory / ROUNDS
        try:
            return codec.decode(Rounds, read_bytes(path), "")
        except FileNotFoundError:
            return Rounds((), ())
        except (OSError, ValueError) as error:
            raise LabError(f"{path}: is damaged ({error}): remove it, and collect again") from None

    def add_round(self, further: Sequence[tuple[Mapping[str, str | int], int]]) -> Rounds:
        """Further runs, each by its parameters and its seed, for the next call of each shard. Raises OSError."""
        before = self.rounds()
        begin = len(self.runs) + len(before.runs) + 1
        more = tuple(FurtherRun(begin + index, *each) for index, each in enumerate(further))
        result = Rounds((*before.ends, begin - 1 + len(more)), (*before.runs, *more))
        self._write(ROUNDS, result)
        return result

    def keep(self, record: Record) -> None:
        """Writes a shard's record. Raises OSError."""
        self._write(f"{SHARDS}/{Shard.parse(record.shard).file}", record)

    def records(self) -> list[Record]:
        """The records of all shards that have one, the earliest first; LabError where one is damaged."""
        found = []
        for path in sorted((self.directory / SHARDS).glob("*-of-*.json")):
            if path.name.startswith("."):
                continue
            try:
                record = codec.decode(Record, read_bytes(path), "record")
                Shard.parse(record.shard)
            except (OSError, ValueError) as error:
                raise LabError(f"{path}: is damaged ({error}): remove it, and run that shard again") from None
            found.append(record)
        return sorted(found, key=lambda record: record.ended)

    def _write(self, name: str, content: Record | Rounds) -> None:
        writing.write(self.directory / name, codec.document(content))
