"""Experiments: `ewan run` and `ewan exp rerun` from a scenario to its archive.

Real runs, most of them in the virtual clock, where seconds of traffic take less than one.
"""

from __future__ import annotations

import random
import shutil
import subprocess
import tarfile
from pathlib import Path

import orjson
import polars as pl
import pytest
import zstandard

from ewan.experiments.engine import archive
from ewan.experiments.engine.experiment import Experiment
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.record import disturbances, tables
from ewan.labs.record.experiment import INPUTS, LOCK, STAGES
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.locks import held
from tests.conftest import Ewan
from tests.experiments import document, only, vouch, written

pytestmark = pytest.mark.virtual

BESIDE = "beside: [{source: a paper, when: {cc: reno}, metric: aggregate goodput, value: 9Mbit/s}]"


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


def test_nothing_disturbs_the_virtual_clock_and_its_records_say_nothing_of_it(
    finished: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    directory, _ = finished
    told = document(directory)
    assert all("disturbed" not in run for run in told["runs"])
    summary = orjson.loads((directory / "summary.json").read_bytes())
    assert "disturbed" not in summary and all("disturbed" not in run for run in summary["runs"])
    assert "disturbances" not in orjson.loads((directory / "runs/001/program.json").read_bytes())
    left = {path.name.partition(".")[0] for path in directory.glob("runs/*/*")}
    assert not left & set(disturbances.TABLES)


def test_the_table_has_a_row_for_each_point_and_the_papers_number(
    finished: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    directory, result = finished
    assert "aggregate goodput" in result.stdout and "reno" in result.stdout and "cubic" in result.stdout
    assert "a paper" in result.stdout and "9 Mbit/s" in result.stdout
    page = directory.relative_to(directory.parents[1]) / "report.html"
    assert result.stdout.rstrip().endswith(f"report: {page} (open it in a browser)")
    assert (directory / "report.html").stat().st_size > 1000


def test_the_archive_holds_all_and_the_repetition_is_the_same_to_the_byte(
    ewan: Ewan, tmp_path: Path, finished: tuple[Path, subprocess.CompletedProcess[str]]
) -> None:
    directory, _ = finished
    (archive,) = directory.glob("*.tar.zst")
    result = ewan("exp", "rerun", str(archive), "--json", "--trust", cwd=tmp_path)
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
    result = ewan("exp", "rerun", str(original), cwd=tmp_path)
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
    present = {"flows", "series", "goodput", "exchanges", "links"}
    assert {Path(name).stem for name in tabled} == present and len(tabled) == 4 * len(present)
    draw = random.Random(1)
    # Of files of the same kind one, of any run.
    kinds = {Path(name).name: name for name in draw.sample(sorted(recorded), len(recorded))}
    for name in sorted(kinds.values()):
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
        f"`ewan exp resume {where} --from execution` measures it anew\n"
    )
    for words in (["results", "report", where], ["exp", "rerun", where]):
        result = ewan(*words, cwd=home)
        assert (result.returncode, result.stderr) == (2, says)
    archived = home / "damaged.tar.zst"
    archive.pack(directory, "two").rename(archived)
    result = ewan("exp", "rerun", str(archived), "--trust", cwd=home)
    assert result.returncode == 2
    assert result.stderr == (
        f"ewan: {archived}: runs/003/goodput.parquet in it is damaged or missing, it is not what experiment.json "
        "records: take another copy\n"
    )
    assert ewan("exp", "resume", where, "--from", "execution", cwd=home).returncode == 0
    assert path.read_bytes() == whole


def test_resuming_what_is_complete_does_nothing_and_a_stage_can_be_repeated(
    ewan: Ewan, finished: tuple[Path, subprocess.CompletedProcess[str]]
) -> None:
    directory, _ = finished
    home = directory.parents[1]
    before = {path: path.read_bytes() for path in directory.glob("runs/*/*.parquet")}
    assert "nothing is left to do" in ewan("exp", "resume", str(directory), cwd=home).stderr
    (directory / "report.html").unlink()
    result = ewan("exp", "resume", str(directory), "--from", "logs", cwd=home)
    assert result.returncode == 0, result.stderr
    assert "execution" not in result.stderr and (directory / "report.html").exists()
    assert {path: path.read_bytes() for path in before} == before


def test_two_at_once_in_one_directory_are_refused(
    ewan: Ewan, finished: tuple[Path, subprocess.CompletedProcess[str]]
) -> None:
    directory, _ = finished
    with held(directory / LOCK, 0.0, "somebody holds it"):
        result = ewan("exp", "resume", str(directory), "--from", "analysis", cwd=directory)
    assert result.returncode == 2
    assert result.stderr == f"ewan: {directory}: another `ewan run` is at work there: wait for its end\n"


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
    summary = orjson.loads((directory / "summary.json").read_bytes())
    assert [run["disturbed"]["seconds"] for run in summary["runs"]] == [run["disturbed"] for run in told["runs"]]
    assert 2 * 2e9 < summary["disturbed"]["watched_ns"] < 2 * 4e9
    marked = [line for line in result.stderr.splitlines() if "links left their tolerance in" in line]
    assert len(marked) == len(summary["disturbed"]["runs"]), "a line for each run that was marked"
    (archive,) = directory.glob("*.tar.zst")
    again = ewan("exp", "rerun", str(archive), "--json", "--trust", cwd=tmp_path)
    assert orjson.loads(again.stdout)["complete"], again.stderr
    verdicts = {each["verdict"] for each in orjson.loads(again.stdout)["findings"]}
    assert again.returncode == (1 if "different" in verdicts else 0)
    assert verdicts & {"within noise", "same"}


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
        result = ewan("exp", "rerun", f"{name}.tar.zst", "--trust", cwd=tmp_path)
        assert result.returncode == 2
        assert says in result.stderr and len(result.stderr.splitlines()) == 1
    assert not (tmp_path.parent / "outside").exists()
    result = ewan("exp", "resume", str(tmp_path), cwd=tmp_path)
    assert result.returncode == 2 and "there is no experiment" in result.stderr


def test_inputs_of_a_run_are_what_execution_reads(finished: tuple[Path, subprocess.CompletedProcess[str]]) -> None:
    for name in INPUTS:
        assert (finished[0] / "runs/001" / name).stat().st_size > 0
    program = orjson.loads((finished[0] / "runs/001/program.json").read_bytes())
    assert program["traffic"]["longest_ns"] == 30 * NS_PER_SECOND
