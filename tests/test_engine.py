"""Experiments: `ewan run` and `ewan rerun` from a scenario to its archive, and all that may come in between.

Real runs, most of them in the virtual clock, where seconds of traffic take less than one.
"""

from __future__ import annotations

import fcntl
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest
import zstandard

from generator.engine import archive
from generator.engine.experiment import STAGES, Experiment
from labs.record import tables
from labs.record.experiment import INPUTS
from labs.runtime.base import LabError
from labs.units import NS_PER_SECOND
from tests.conftest import ROOT, Ewan

pytestmark = pytest.mark.virtual

SCENARIO = """
name: {name}
title: Two flows on one link
about: |
  Two transfers share a link.
lab: {{topology: {{dumbbell: {{pairs: 2}}}}, rtt: 20ms, wan: {{rate: 10Mbit/s}}}}
parameters: {{cc: reno, length: 2s}}
sweep: {{cc: [{variants}]}}
seeds: {seeds}
sample: 100ms
series: 100ms
watch: 100ms
longest: {longest}
steps:
  - {{name: load, from: "left[1-2]", to: "right[1-2]", congestion: "${{cc}}", for: "${{length}}", bulk: {{}}}}
{more}
"""

BESIDE = "beside: [{source: a paper, when: {cc: reno}, metric: aggregate goodput, value: 9Mbit/s}]"


def written(place: Path, more: str = "", variants: str = "reno", seeds: int = 1, longest: str = "30s") -> str:
    """A scenario's file, whose labs have a name that no user's has."""
    path = place / "two.scenario.yaml"
    text = SCENARIO.format(name=f"t{os.getpid() % 10000}", variants=variants, seeds=seeds, longest=longest, more=more)
    path.write_text(text)
    return str(path)


def only(place: Path) -> Path:
    """The one experiment in results/."""
    (found,) = (place / "results").iterdir()
    return found


def document(directory: Path) -> dict[str, Any]:
    content: dict[str, Any] = orjson.loads((directory / "experiment.json").read_bytes())
    return content


def vouch(directory: Path, *names: str) -> None:
    """The experiment records the present bytes of these files."""
    changed = Experiment.load(directory)
    for name in names:
        changed.record(directory / name)
    changed.save()


def statuses(directory: Path) -> list[str]:
    return [run["status"] for run in document(directory)["runs"]]


@pytest.fixture(scope="module")
def finished(ewan: Ewan, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """An experiment of two variants and two seeds, and what it printed."""
    place = tmp_path_factory.mktemp("finished")
    scenario = written(place, BESIDE, variants="reno, cubic", seeds=2)
    result = ewan("run", scenario, "--runtime", "virtual", cwd=place)
    assert result.returncode == 0, result.stdout + result.stderr
    return only(place), result


def test_every_stage_is_shown_and_kept(finished: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    directory, result = finished
    begun = [line.removesuffix(" …") for line in result.stderr.splitlines() if line.endswith(" …")]
    assert begun == list(STAGES.values())
    assert "execution: 4 of 4 runs complete" in result.stderr
    told = document(directory)
    assert told["status"] == "complete" and told["clock"] == "virtual"
    assert [told["stages"][stage]["status"] for stage in STAGES] == ["complete"] * len(STAGES)
    assert [(run["parameters"]["cc"], run["seed"]) for run in told["runs"]] == [
        ("reno", 1),
        ("reno", 2),
        ("cubic", 1),
        ("cubic", 2),
    ]
    (certificate,) = (directory / "certificates").iterdir()
    for run in told["runs"]:
        assert run["verified"]
        assert run["certificate"] == f"certificates/{certificate.name}", "they differ by seeds alone"


def test_results_are_tables_of_what_was_sent(finished: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    directory, _ = finished
    place = directory / "runs/001"
    flows = tables.read(place, "flows")
    assert flows["source"].to_list() == ["left1", "left2"] and flows["congestion"].to_list() == ["reno", "reno"]
    assert flows["error"].null_count() == 2
    goodput = flows["received_bytes"].sum() * 8 / 2
    assert 8.5e6 < goodput < 9.42e6, "10 Mbit/s less headers, slow start within two seconds"
    binned = tables.read(place, "goodput")["delivered_bytes"].sum()
    assert binned == pytest.approx(flows["received_bytes"].sum(), rel=0.01)
    cores = tables.read(place, "links").filter(pl.col("link") == "core", pl.col("direction") == "forward")
    assert 0.85 * 2.5e6 < cores["sent_bytes"].max() < 1.05 * 2.5e6  # type: ignore[operator]
    assert not list(directory.glob("runs/*/traffic/*.csv")), "Parquet holds them"


def test_the_table_has_a_row_for_each_point_and_the_papers_number(
    finished: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    directory, result = finished
    assert "aggregate goodput" in result.stdout and "reno" in result.stdout and "cubic" in result.stdout
    assert "a paper" in result.stdout and "9 Mbit/s" in result.stdout
    assert result.stdout.rstrip().endswith(f"report: {directory.relative_to(directory.parents[1])}/report.html")
    assert (directory / "report.html").stat().st_size > 1000


def test_the_archive_holds_all_and_the_repetition_is_the_same_to_the_byte(
    ewan: Ewan, tmp_path: Path, finished: tuple[Path, subprocess.CompletedProcess[str]]
) -> None:
    directory, _ = finished
    (archive,) = directory.glob("*.tar.zst")
    result = ewan("rerun", str(archive), "--json", cwd=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    found = orjson.loads(result.stdout)
    assert [each["verdict"] for each in found["findings"]] == ["same"] * 4
    again = only(tmp_path)
    for path in directory.glob("runs/*/*.parquet"):
        assert (again / path.relative_to(directory)).read_bytes() == path.read_bytes()


def test_a_repetition_that_differs_says_where(
    ewan: Ewan, tmp_path: Path, finished: tuple[Path, subprocess.CompletedProcess[str]]
) -> None:
    original = tmp_path / "original"
    shutil.copytree(finished[0], original)
    place = original / "runs/003"
    flows = tables.read(place, "flows")
    ended = flows["ended_ns"][1]
    changed = pl.when(pl.col("flow") == 1).then(pl.col("ended_ns") + 1).otherwise(pl.col("ended_ns"))
    tables.write(place, "flows", flows.with_columns(changed.alias("ended_ns")))
    vouch(original, "runs/003/flows.parquet")
    result = ewan("rerun", str(original), cwd=tmp_path)
    assert result.returncode == 1
    assert f"run 3 (cc=cubic seed=1): flows.parquet: row 1, ended_ns: {ended + 1} ns before, {ended} ns now" in (
        " ".join(result.stdout.split())
    )


def test_a_flipped_bit_is_named_by_whatever_reads_the_file(
    ewan: Ewan, tmp_path: Path, finished: tuple[Path, subprocess.CompletedProcess[str]]
) -> None:
    home = tmp_path / "home"
    directory = home / "results/damaged"
    shutil.copytree(finished[0], directory)
    recorded = document(directory)["files"]
    tabled = [name for name in recorded if name.endswith(".parquet")]
    assert len(tabled) == 4 * len(tables.TABLES), "every table of every run"
    draw = random.Random(1)
    for name in recorded:
        whole = (directory / name).read_bytes()
        flipped = bytearray(whole)
        flipped[draw.randrange(len(whole))] ^= 1 << draw.randrange(8)
        (directory / name).write_bytes(flipped)
        with pytest.raises(LabError, match=rf"^{directory / name}: is damaged"):
            Experiment.load(directory).check()
        (directory / name).write_bytes(whole)
    Experiment.load(directory).check()
    path = directory / "runs/003/goodput.parquet"
    whole = path.read_bytes()
    path.write_bytes(whole[:-20] + bytes([whole[-20] ^ 1]) + whole[-19:])
    where = "results/damaged"
    says = (
        f"ewan: {where}/runs/003/goodput.parquet: is damaged, its bytes are not those that experiment.json records: "
        f"`ewan run --resume {where} --from execution` measures it anew\n"
    )
    for words in (["report", where], ["rerun", where]):
        result = ewan(*words, cwd=home)
        assert (result.returncode, result.stderr) == (2, says)
    archived = home / "damaged.tar.zst"
    archive.pack(directory, "two").rename(archived)
    result = ewan("rerun", str(archived), cwd=home)
    assert result.returncode == 2
    assert result.stderr == (
        f"ewan: {archived}: runs/003/goodput.parquet in it is damaged or missing, it is not what experiment.json "
        "records: take another copy\n"
    )
    assert ewan("run", "--resume", where, "--from", "execution", cwd=home).returncode == 0
    assert path.read_bytes() == whole


def test_resuming_what_is_complete_does_nothing_and_a_stage_can_be_repeated(
    ewan: Ewan, finished: tuple[Path, subprocess.CompletedProcess[str]]
) -> None:
    directory, _ = finished
    home = directory.parents[1]
    before = {path: path.read_bytes() for path in directory.glob("runs/*/*.parquet")}
    assert "nothing is left to do" in ewan("run", "--resume", str(directory), cwd=home).stderr
    (directory / "report.html").unlink()
    result = ewan("run", "--resume", str(directory), "--from", "logs", cwd=home)
    assert result.returncode == 0, result.stderr
    assert "execution" not in result.stderr and (directory / "report.html").exists()
    assert {path: path.read_bytes() for path in before} == before


class Engine:
    """`ewan run` as a process of its own."""

    def __init__(self, place: Path, *arguments: str, state: Path | None = None) -> None:
        self.place = place
        command = [sys.executable, str(ROOT / "ewan.py"), "run", *arguments]
        environment = os.environ | {"NO_COLOR": "1", "COLUMNS": "200"}
        if state is not None:
            environment["EWAN_STATE"] = str(state)
        self.process = subprocess.Popen(
            command, cwd=place, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )

    def until(self, complete: int) -> Path:
        """Waits till so many runs have ended; the experiment's directory."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline and self.process.poll() is None:
            found = list(self.place.glob("results/*/experiment.json"))
            if found and statuses(found[0].parent).count("complete") >= complete:
                return found[0].parent
            time.sleep(0.05)
        raise AssertionError(f"it did not come so far: {self.process.communicate()[1]}")

    def end(self) -> tuple[int, str]:
        said = self.process.communicate(timeout=60)[1]
        return self.process.returncode, said


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_what_was_interrupted_goes_on_where_it_was(ewan: Ewan, tmp_path: Path, how: signal.Signals) -> None:
    engine = Engine(tmp_path, written(tmp_path, seeds=12), "--set", "length=20s", "--runtime", "virtual")
    directory = engine.until(complete=1)
    engine.process.send_signal(how)
    status, said = engine.end()
    if how == signal.SIGKILL:
        assert status == -signal.SIGKILL
    else:
        assert status == 2 and document(directory)["status"] == "incomplete"
        where = directory.relative_to(tmp_path)
        assert said.splitlines()[-1] == (
            f"ewan: interrupted: what has ended is in {where}: ewan run --resume {where} goes on"
        )
    kept = {run["directory"] for run in document(directory)["runs"] if run["status"] == "complete"}
    assert 0 < len(kept) < 12
    written_at = {name: (directory / name / "wall.json").stat().st_mtime_ns for name in kept}
    result = ewan("run", "--resume", str(directory), cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert statuses(directory) == ["complete"] * 12
    for name, at in written_at.items():
        assert (directory / name / "wall.json").stat().st_mtime_ns == at, "it was not run again"


def test_two_at_once_in_one_directory_are_refused(
    ewan: Ewan, finished: tuple[Path, subprocess.CompletedProcess[str]]
) -> None:
    directory, _ = finished
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        result = ewan("run", "--resume", str(directory), "--from", "analysis", cwd=directory)
    finally:
        os.close(descriptor)
    assert result.returncode == 2
    assert result.stderr == f"ewan: {directory}: another `ewan run` is at work there: wait for its end\n"


def test_two_at_once_in_directories_of_their_own_both_end(tmp_path: Path) -> None:
    scenario = written(tmp_path)
    both = [Engine(tmp_path, scenario, "--runtime", "virtual") for _ in range(2)]
    assert [engine.end()[0] for engine in both] == [0, 0]
    first, second = (tmp_path / "results").iterdir()
    for path in first.glob("runs/*/*.parquet"):
        assert (second / path.relative_to(first)).read_bytes() == path.read_bytes()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system that 64 MB fill."""
    assert os.geteuid() == 0, "this test mounts a small file system: run it as root"
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", place], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_a_full_disk_ends_it_in_one_line_and_what_was_measured_is_kept(ewan: Ewan, small_disk: Path) -> None:
    fill = '  - {name: fill, at: 1s, on: left1, run: "cat /dev/zero > $EWAN_OUT/zeros || true"}'
    result = ewan("run", written(small_disk, fill, seeds=8), "--runtime", "virtual", cwd=small_disk)
    directory = only(small_disk)
    assert result.returncode == 1, result.stderr
    last = result.stderr.splitlines()[-1]
    assert last.startswith(f"ewan: no space left in {directory.relative_to(small_disk)}: make room there"), (
        result.stderr
    )
    assert "Traceback" not in result.stderr
    assert document(directory)["status"] == "incomplete"
    assert "waiting" in statuses(directory), "it did not go on"


def test_a_flow_that_cannot_connect_leaves_the_others_and_says_which(ewan: Ewan, tmp_path: Path) -> None:
    more = """
  - {name: cut, on: right2, run: "ip link set dev eth0 down"}
  - {name: late, at: 1s, from: left2, to: right2, for: 1s, bulk: {}}
"""
    text = written(tmp_path, more, longest="6s")
    Path(text).write_text(Path(text).read_text().replace('"left[1-2]", to: "right[1-2]"', "left1, to: right1"))
    result = ewan("run", text, "--runtime", "virtual", cwd=tmp_path)
    assert result.returncode == 1, result.stderr
    directory = only(tmp_path)
    assert document(directory)["status"] == "incomplete"
    (run,) = document(directory)["runs"]
    assert run["status"] == "incomplete" and "late left2 to right2" in run["error"]
    assert f"is incomplete: {run['error']}" in result.stderr
    flows = tables.read(directory / "runs/001", "flows")
    fine, cut = flows.rows(named=True)
    assert fine["error"] is None and fine["received_bytes"] > 1e6
    assert cut["error"] is not None and not cut["received_bytes"]
    assert (directory / "report.html").exists(), "what was measured is shown"


def test_a_node_that_stalls_fails_its_run_alone(ewan: Ewan, tmp_path: Path) -> None:
    more = '  - {name: busy, at: 1s, on: left1, run: "test $((EWAN)) -eq 0 && exec sha256sum /dev/zero"}'
    text = written(tmp_path, more)
    result = ewan("run", text, "--runtime", "virtual", cwd=tmp_path)
    assert result.returncode == 1, result.stderr
    (run,) = document(only(tmp_path))["runs"]
    assert run["status"] == "failed" and "virtual time has stood still" in run["error"]


@pytest.mark.parametrize(
    ("runtime", "variant", "says"),
    [
        (
            "virtual",
            "reno, vegan",
            "congestion control vegan: the virtual kernel has none of that name: ",
        ),
        ("netns", "reno, vegan", "congestion control vegan: this kernel lets nodes have "),
    ],
)
def test_a_variant_that_the_kernel_lacks_is_refused_first(
    ewan: Ewan, tmp_path: Path, runtime: str, variant: str, says: str
) -> None:
    result = ewan("run", written(tmp_path, variants=variant), "--runtime", runtime, cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith(f"ewan: {says}") and len(result.stderr.splitlines()) == 1
    assert not list((tmp_path / "results").iterdir())


def test_a_program_that_is_not_there_is_refused_first(ewan: Ewan, tmp_path: Path) -> None:
    more = '  - {name: mpi, on: left1, run: "mpirun-of-nobody -n 4 true"}'
    result = ewan("run", written(tmp_path, more), "--runtime", "virtual", cwd=tmp_path)
    assert result.returncode == 2
    assert result.stderr.startswith("ewan: mpirun-of-nobody, which node left1 is to run, is not on this machine")
    assert not list((tmp_path / "results").iterdir())


def test_seeds_are_added_until_the_interval_is_narrow_enough(ewan: Ewan, tmp_path: Path) -> None:
    stop = "stop: {metric: aggregate goodput, within: 0.001%, confidence: 95%, at_least: 2, at_most: 5}"
    result = ewan("run", written(tmp_path, stop, seeds=2), "--runtime", "virtual", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    directory = only(tmp_path)
    assert [run["seed"] for run in document(directory)["runs"]] == [1, 2, 3, 4, 5], "as many as allowed"
    wide = tmp_path / "wide"
    wide.mkdir()
    text = written(wide, stop.replace("0.001%", "90%"), seeds=2)
    assert ewan("run", text, "--runtime", "virtual", cwd=wide).returncode == 0
    assert [run["seed"] for run in document(only(wide))["runs"]] == [1, 2], "narrow enough from the start"


@pytest.mark.live
def test_live_runs_share_a_lab_that_is_gone_afterwards_and_repeat_within_noise(
    ewan: Ewan, state: Path, tmp_path: Path
) -> None:
    # On a busy machine a live lab may be outside its tolerances, which is another test's matter.
    result = ewan("run", written(tmp_path, variants="reno, cubic"), "--runtime", "netns", "--unverified", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    directory = only(tmp_path)
    told = document(directory)
    assert told["clock"] == "live" and len({run["plan_sha256"] for run in told["runs"]}) == 1
    assert not list(state.glob("*/manifest.json"))
    goodput = tables.read(directory / "runs/001", "flows")["goodput_bps"].sum()
    assert 5e6 < goodput < 9.6e6
    (archive,) = directory.glob("*.tar.zst")
    again = ewan("rerun", str(archive), "--json", cwd=tmp_path)
    assert orjson.loads(again.stdout)["complete"], again.stderr
    verdicts = {each["verdict"] for each in orjson.loads(again.stdout)["findings"]}
    assert again.returncode == (1 if "different" in verdicts else 0)
    assert verdicts & {"within noise", "same"}


@pytest.mark.live
def test_a_killed_live_engine_leaves_what_the_next_one_removes(ewan: Ewan, state: Path, tmp_path: Path) -> None:
    scenario = written(tmp_path)
    arguments = (scenario, "--set", "length=60s", "--runtime", "netns", "--unverified")
    engine = Engine(tmp_path, *arguments, state=state)
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("results/*/runs/001/traffic/request.json")):
        assert time.monotonic() < deadline and engine.process.poll() is None
        time.sleep(0.05)
    engine.process.kill()
    engine.end()
    directory = only(tmp_path)
    assert len(list(state.glob("*/manifest.json"))) == 1, "its lab is still up"
    # The same in less time.
    for name in ("program.json", "schedule.json"):
        path = directory / "runs/001" / name
        path.write_text(path.read_text().replace("60000000000", "1000000000").replace("30000000000", "9000000000"))
    vouch(directory, "runs/001/program.json", "runs/001/schedule.json")
    result = ewan("run", "--resume", str(directory), cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert statuses(directory) == ["complete"]
    assert tables.read(directory / "runs/001", "flows")["ended_ns"].max() < 2e9  # type: ignore[operator]
    assert not list(state.glob("*/manifest.json"))


def test_another_file_is_no_experiment(ewan: Ewan, tmp_path: Path) -> None:
    plain = tmp_path / "notes.tar.zst"
    plain.write_bytes(b"no archive")
    evil = tmp_path / "evil.tar.zst"
    with (
        evil.open("wb") as file,
        zstandard.ZstdCompressor().stream_writer(file) as squeezed,
        tarfile.open(fileobj=squeezed, mode="w|") as tar,
    ):
        tar.addfile(tarfile.TarInfo("../outside"))
    for name, says in (("notes", "is no archive of an experiment"), ("evil", "would leave its place")):
        result = ewan("rerun", f"{name}.tar.zst", cwd=tmp_path)
        assert result.returncode == 2
        assert says in result.stderr and len(result.stderr.splitlines()) == 1
    assert not (tmp_path.parent / "outside").exists()
    result = ewan("run", "--resume", str(tmp_path), cwd=tmp_path)
    assert result.returncode == 2 and "there is no experiment" in result.stderr


def test_inputs_of_a_run_are_what_execution_reads(finished: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    for name in INPUTS:
        assert (finished[0] / "runs/001" / name).stat().st_size > 0
    program = orjson.loads((finished[0] / "runs/001/program.json").read_bytes())
    assert program["traffic"]["longest_ns"] == 30 * NS_PER_SECOND
