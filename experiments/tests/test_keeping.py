"""Experiments and the store: nothing runs twice, and an error of the store hinders nothing. Runs are real, the
surroundings of the engine are replaced."""

from __future__ import annotations

import dataclasses
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from ewan.experiments.engine import engine, preparation, unit
from ewan.experiments.engine.experiment import Experiment
from ewan.experiments.engine.parts import Facts
from ewan.experiments.engine.unit import Tools
from ewan.experiments.store import Store
from ewan.experiments.tests.engines import CONTEXT, TEXT, jobs, parts
from ewan.experiments.tests.origins import origin
from ewan.labs.context import Context
from ewan.labs.record import tables
from ewan.labs.runtime import kernel
from ewan.labs.runtime.binary import node_binary

pytestmark = pytest.mark.virtual


@pytest.fixture(scope="module")
def known(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that has two runs, and the experiment beside it that measured them."""
    place = tmp_path_factory.mktemp("known")
    assert begun(place / "first", place / "store") == 0
    return place


def with_store(root: Path | None) -> Context:
    return dataclasses.replace(CONTEXT, store=root)


def begun(place: Path, store: Path | None, text: str = TEXT, **more: Any) -> int:
    """Runs the small scenario, with this store; the exit status."""
    facts = Facts({}, origin(scenario="engine"))
    prepared = preparation.prepare(jobs(text), facts, virtual=True, directory=place)
    return engine.run(prepared, parts=parts("ok"), context=with_store(store), **more)


def copied(known: Path, place: Path) -> Store:
    """A store with the same entries."""
    subprocess.run(["cp", "-r", known / "store", place / "store"], check=True)
    return Store(place / "store")


def contents(place: Path) -> dict[str, bytes]:
    """The files that runs left, and the certificates."""
    found = [*place.glob("runs/*/**/*"), *place.glob("certificates/*")]
    return {
        path.relative_to(place).as_posix(): path.read_bytes()
        for path in found
        if path.is_file() and path.name != "console.log"
    }


def taken(place: Path) -> list[bool]:
    return [bool(entry.taken) for entry in Experiment.load(place).runs]


def started(place: Path) -> list[int]:
    """The wall time of each run, which no other execution of it has."""
    return [orjson.loads(path.read_bytes())["wall_ns"] for path in sorted(place.glob("runs/*/wall.json"))]


def test_an_experiment_takes_what_another_one_measured(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The other one may have another name, more runs, and other names of values."""
    store = copied(known, tmp_path)
    assert begun(tmp_path / "second", store.root) == 0
    said = capsys.readouterr().err
    assert f"2 of 2 runs are in the store ({store.root}), which saves " in said and "of work: --again" in said
    assert contents(tmp_path / "second") == contents(known / "first"), "wall.json too: it was not run again"
    assert taken(known / "first") == [False, False] and taken(tmp_path / "second") == [True, True]
    Experiment.load(tmp_path / "second").check()
    more = TEXT.replace("seeds: 2", "seeds: 3\nsweep: {how: [reno]}").replace(
        "congestion: reno", 'congestion: "${how}"'
    )
    assert begun(tmp_path / "third", store.root, more) == 0
    assert "2 of 3 runs are in the store" in capsys.readouterr().err
    assert taken(tmp_path / "third") == [True, True, False]
    assert len(list(store.entries())) == 4, "three runs and the certificate of their lab"
    entry = Experiment.load(tmp_path / "third").runs[2]
    assert entry.key is not None
    told = store.verify(entry.key)
    assert told is not None and (told.origin.name, told.origin.experiment) == ("how=reno seed=3", "third")
    assert told.origin.wall_ns > told.origin.cpu_ns > 0


def test_what_is_to_be_measured_again_is(known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """--again, --from execution, and a repetition that is resumed."""
    store = copied(known, tmp_path)
    assert begun(tmp_path / "fresh", store.root, fresh=True) == 0
    assert taken(tmp_path / "fresh") == [False, False]
    before = started(tmp_path / "fresh")
    context = with_store(store.root)
    assert engine.resume(tmp_path / "fresh", parts=parts("ok"), context=context, start="execution") == 0
    assert not set(before) & set(started(tmp_path / "fresh"))
    repeated = Experiment.load(tmp_path / "fresh")
    repeated.document.rerun_of = "the original"
    for entry in repeated.runs:
        entry.begin_anew()
    repeated.document.stages["execution"].status = "waiting"
    repeated.save()
    assert engine.resume(tmp_path / "fresh", parts=parts("ok"), context=context) == 0
    assert taken(tmp_path / "fresh") == [False, False] and "in the store" not in capsys.readouterr().err
    ours, others = contents(tmp_path / "fresh"), contents(known / "first")
    assert {name for name in ours if ours[name] != others[name]} == {"runs/001/wall.json", "runs/002/wall.json"}


def test_a_damaged_entry_is_said_and_measured_again(
    known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = copied(known, tmp_path)
    (first, _) = Experiment.load(known / "first").runs
    assert first.key is not None
    path = store.path(first.key)
    path.write_bytes(path.read_bytes()[:-9])
    assert begun(tmp_path / "second", store.root) == 0
    said = capsys.readouterr().err
    assert f"warning: {path}: is no whole archive" in said and "run 1 is to be measured again" in said
    assert "1 of 2 runs are in the store" in said
    assert taken(tmp_path / "second") == [False, True]
    assert store.verify(first.key) is not None and len(store.leavings()) == 1
    Experiment.load(tmp_path / "second").check()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 kB."""
    assert os.geteuid() == 0, "this test mounts a small file system: run it as root"
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


@pytest.mark.parametrize("how", ["full", "read-only"])
def test_a_store_that_takes_nothing_is_said_once(
    disk: Path, known: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    """The store is read all the same."""
    (first, _) = Experiment.load(known / "first").runs
    assert first.key is not None
    path = Store(disk / "store").path(first.key)
    path.parent.mkdir(parents=True)
    path.write_bytes(Store(known / "store").path(first.key).read_bytes())
    if how == "full":
        with (disk / "zeros").open("wb") as file, pytest.raises(OSError, match="No space"):
            file.write(bytes(1 << 20))
            file.flush()
    else:
        subprocess.run(["mount", "-o", "remount,ro", disk], check=True)
    assert begun(tmp_path / "second", disk / "store", TEXT.replace("seeds: 2", "seeds: 3")) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "warning" in line and "store" in line]
    why = "No space left on device" if how == "full" else "Read-only file system"
    assert said == [
        f"warning: {disk / 'store'}: {why}: nothing more is put into the store; results stay in the experiment"
    ]
    assert taken(tmp_path / "second") == [True, False, False]
    Experiment.load(tmp_path / "second").check()


def test_without_a_store_all_is_measured(tmp_path: Path) -> None:
    assert begun(tmp_path / "first", None) == 0
    assert [entry.key for entry in Experiment.load(tmp_path / "first").runs] == [None, None]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["first"]


def test_a_unit_is_executed_anywhere(known: Path, tmp_path: Path) -> None:
    """The entry that a worker sends back is the one that this machine would have made, apart from its cost."""
    experiment = Experiment.load(known / "first")
    (first, _) = experiment.runs
    tools = Tools(kernel.kernel(print), node_binary(CONTEXT.binary))
    work = unit.unit(experiment.contents(first), tools, first.expected_ns, "engine", "first", first.name)
    assert work.key == first.key and work.memory_bytes > 10 << 20
    packed = unit.execute(work, tools, tmp_path / "scratch")
    assert (packed.status, packed.error) == ("complete", None) and packed.wall_ns > packed.cpu_ns > 0
    assert packed.entry is not None and not list((tmp_path / "scratch").iterdir())
    store = Store(tmp_path / "store")
    store.put_packed(packed.key, packed.entry)
    assert store.take(packed.key, tmp_path / "back") is not None
    ours, others = Store(known / "store").read(packed.key), store.read(packed.key)
    assert ours is not None and others is not None
    assert {name for name in ours[1] if ours[1][name] != others[1].get(name)} == {"wall.json"}
    assert tables.read(tmp_path / "back", "flows").height == 1


def test_a_run_with_an_error_of_its_own_stays_out_of_the_store(known: Path, tmp_path: Path) -> None:
    text = TEXT.replace("seeds: 2", "seeds: 1") + '  - {name: wrong, on: left1, run: "false"}\n'
    assert begun(tmp_path / "first", tmp_path / "store", text) == 1
    (entry,) = Experiment.load(tmp_path / "first").runs
    assert entry.status == "incomplete" and "status 1" in (entry.error or "")
    assert entry.key is not None and not Store(tmp_path / "store").has(entry.key)
    assert (tmp_path / "first/runs/001/flows.parquet").exists(), "what it measured is kept in the experiment"


def test_commands_of_nodes_are_executed_and_what_a_run_executes_stays(tmp_path: Path) -> None:
    """The run can be taken, checked and resumed like any other."""
    exec_ = 'nodes: {left1: {exec: ["ip link add dummy-of-left type veth"]}}'
    text = TEXT.replace("wan: {rate: 10Mbit/s}", f"wan: {{rate: 10Mbit/s}}, {exec_}").replace("seeds: 2", "seeds: 1")
    text += '  - {name: look, on: left1, run: "ip link show dummy-of-left"}\n'
    assert begun(tmp_path / "first", tmp_path / "store", text) == 0
    Experiment.load(tmp_path / "first").check()
    assert begun(tmp_path / "second", tmp_path / "store", text) == 0 and taken(tmp_path / "second") == [True]
    context = with_store(tmp_path / "store")
    assert engine.resume(tmp_path / "second", parts=parts("ok"), context=context, start="execution") == 0
    assert contents(tmp_path / "second").keys() == contents(tmp_path / "first").keys()
    (job,) = jobs(text)
    assert [step.argv[:2] for step in job.program.prepare] == [("ip", "link")], "once, though the runtime adds them too"
