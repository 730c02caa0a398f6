"""Disks that are full or may not be written: one line, before anything is started where that can be known."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pytest

from ewan.experiments.engine.engine import resume
from ewan.experiments.tests.crates import ended
from ewan.experiments.tests.engines import CONTEXT, parts
from ewan.labs import rundir
from ewan.labs.runtime.base import LabError
from tests.conftest import ROOT, Disk, Ewan

pytestmark = pytest.mark.virtual

LAB = ("dumbbell", "--rtt", "20ms", "--rate", "100M")
FILL = "left1: cat /dev/zero > $EWAN_OUT/zeros || true"


@pytest.mark.parametrize("runtime", ["virtual", pytest.param("netns", marks=pytest.mark.untimed)])
def test_a_batch_that_fills_its_disk_ends_in_one_line(
    ewan: Ewan, state: Path, disk: Disk, name: str, runtime: str
) -> None:
    place = disk("size=64m")
    done = ewan("lab", "batch", *LAB, "--name", name, "--do", FILL, "--runtime", runtime, cwd=place)
    (directory,) = (place / "results").iterdir()
    assert done.returncode == 1, done.stderr
    # A live lab may warn of what this kernel lacks first.
    said = done.stderr.splitlines()
    assert said[-1] == f"ewan: no space left in results/{directory.name}: make room there"
    assert all(line.startswith("warning: ") for line in said[:-1]), done.stderr
    assert not (state / name).exists()


@pytest.mark.parametrize(
    ("options", "says"),
    [("size=512k", "make room there"), ("ro", "Read-only file system: run it in a directory where you may write")],
)
@pytest.mark.parametrize(
    "words",
    [
        ("lab", *LAB, "--runtime", "netns"),
        ("lab", *LAB, "--runtime", "virtual"),
        ("lab", "batch", *LAB, "--do", FILL, "--runtime", "netns"),
        ("transfer", *LAB, "--runtime", "virtual"),
        ("run", "parallel-streams", "--size", "quick", "--runtime", "virtual"),
    ],
    ids=lambda words: f"{words[0]}-{words[-1]}",
)
def test_nothing_is_started_where_nothing_can_be_kept(
    ewan: Ewan, state: Path, disk: Disk, words: tuple[str, ...], options: str, says: str
) -> None:
    place = disk(options)
    done = ewan(*words, cwd=place)
    assert done.returncode == 2, done.stderr
    (line,) = done.stderr.splitlines()
    assert line.startswith("ewan: ") and " results/2" in line and line.endswith(f": {says}")
    assert not list(place.glob("results/*")) and not list(state.glob("dumbbell"))


def test_a_disk_that_can_have_no_more_files_is_not_said_to_want_room(
    disk: Disk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(disk("nr_inodes=3"))
    with pytest.raises(rundir.DiskFullError, match="its disk has as many files as it can have, remove some"):
        rundir.make("dumbbell")


@pytest.mark.untimed
def test_a_lab_whose_certificate_cannot_be_kept_says_that_it_is_up(
    ewan: Ewan, state: Path, disk: Disk, name: str
) -> None:
    place = disk("size=8m")
    command = [sys.executable, str(ROOT / "ewan" / "cli.py"), "lab", *LAB, "--name", name, "--runtime", "netns"]
    environment = os.environ | {"EWAN_STATE": str(state), "NO_COLOR": "1", "COLUMNS": "200"}
    process = subprocess.Popen(
        command, cwd=place, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        deadline = time.monotonic() + 60
        while not (state / name / "plan.json").exists():  # it has made its directory, and measures now
            assert time.monotonic() < deadline and process.poll() is None
            time.sleep(0.05)
        (directory,) = (place / "results").iterdir()
        subprocess.run(["dd", "if=/dev/zero", f"of={place / 'zeros'}"], capture_output=True)
        printed, said = process.communicate(timeout=90)
        assert process.returncode == 1, said
        assert said.splitlines()[-1] == (
            f"ewan: no space left in results/{directory.name}: make room there: the certificate is not kept, and lab "
            f"{name} is up: `ewan down {name}` removes it"
        )
        assert "Verification" in printed, "what was measured is shown all the same"
        assert ewan("down", name).returncode == 0
    finally:
        process.kill()
        process.wait()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("size=2m", "ewan: no space left in {place}: make room there"),
        ("nr_inodes=100", "ewan: no space left in {place}: its disk has as many files as it can have, remove some"),
        ("size=2m,ro", "ewan: {file}: Read-only file system: "),
    ],
    ids=["full", "inodes", "read-only"],
)
@pytest.mark.parametrize(
    ("words", "place", "file"),
    [
        (("exp", "tag", "done", "+x"), "done", "done/experiment.json"),
        (("lab", "compile", *LAB, "-o", "out"), "out", "out"),
        (("lab", "import", "tc.sh", "-o", "new.lab.yaml"), ".", "new.lab.yaml"),
        (("results", "export", "parallel-streams", "--ns3", "new/x.cc"), ".", "new"),
        (("course", "start", "bufferbloat", "--student", "4711", "--folder", "begun"), ".", "begun"),
    ],
    ids=lambda words: words[0] if isinstance(words, tuple) else "",
)
def test_what_cannot_be_written_is_one_line_with_its_cause(
    ewan: Ewan, disk: Disk, words: tuple[str, ...], place: str, file: str, options: str, says: str
) -> None:
    top = disk(options.removesuffix(",ro"))
    ended(top / "done")
    (top / "tc.sh").write_text("tc qdisc add dev eth0 root netem delay 10ms rate 10mbit\n")
    if options.endswith(",ro"):
        subprocess.run(["mount", "-o", "remount,ro", top], check=True)
    elif options.startswith("size"):
        (top / "out").mkdir()
        subprocess.run(["dd", "if=/dev/zero", f"of={top / 'zeros'}", "bs=4k"], capture_output=True)
    else:
        with contextlib.suppress(OSError):
            for number in range(1000):
                (top / str(number)).touch()
        place = "." if place == "out" else place
    before = sorted(top.rglob("*"))
    done = ewan(*words, cwd=top)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and line.startswith(says.format(place=place, file=file)), done.stderr
    assert sorted(top.rglob("*")) == before


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("size=2m", "ewan: no space left in {place}: make room there: this check is not noted"),
        ("size=2m,ro", "ewan: {place}/checks.jsonl: Read-only file system: check in a folder where you may write: "),
    ],
    ids=["full", "read-only"],
)
def test_a_check_that_cannot_be_noted_gives_its_verdicts_and_says_so(
    ewan: Ewan, disk: Disk, options: str, says: str
) -> None:
    top = disk(options.removesuffix(",ro"))
    assert ewan("course", "start", "bufferbloat", "--student", "4711", "--folder", "mine", cwd=top).returncode == 0
    if options.endswith(",ro"):
        subprocess.run(["mount", "-o", "remount,ro", top], check=True)
    else:
        subprocess.run(["dd", "if=/dev/zero", f"of={top / 'zeros'}", "bs=4k"], capture_output=True)
    before = sorted(top.rglob("*"))
    done = ewan("course", "check", "mine", cwd=top)
    (line,) = done.stderr.splitlines()
    assert done.returncode == 2 and line.startswith(says.format(place="mine")), done.stderr
    assert "0 of " in done.stdout and sorted(top.rglob("*")) == before


def test_what_may_not_be_written_has_a_remedy(ewan: Ewan, disk: Disk) -> None:
    top = disk("size=2m")
    ended(top / "done")
    subprocess.run(["mount", "-o", "remount,ro", top], check=True)
    made = ewan("exp", "archive", "done", "-o", "x.zip", "--author", "Lovelace, Ada", cwd=top)
    says = "ewan: x.zip: Read-only file system: write -o with a place where you may write"
    assert (made.returncode, made.stderr.splitlines()[-1]) == (2, says)
    says = "experiment.json: Read-only file system: copy the experiment to where you may write, and resume the copy"
    with pytest.raises(LabError, match=re.escape(f"{top}/done/{says}")):
        resume(top / "done", parts=parts("ok"), context=CONTEXT, start="analysis")


def test_a_record_that_is_cut_off_on_a_disk_with_room_is_named(tmp_path: Path) -> None:
    with pytest.raises(LabError, match="a record was not written whole"), rundir.kept(tmp_path):
        orjson.loads(b"{")


@pytest.mark.parametrize("name", ["x.crate.zip", "crate"])
def test_a_crate_is_whole_or_not_there(ewan: Ewan, disk: Disk, tmp_path: Path, name: str) -> None:
    ended(tmp_path / "experiment")
    place = disk("size=64k")
    done = ewan("exp", "archive", str(tmp_path / "experiment"), "-o", name, "--author", "Lovelace, Ada", cwd=place)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1] == "ewan: no space left in .: make room there"
    assert not list(place.iterdir())


@pytest.mark.parametrize("name", ["x.crate.zip", "crate"])
@pytest.mark.parametrize("files", [3, 5, 12])
def test_a_crate_says_that_its_disk_can_have_no_more_files(
    ewan: Ewan, disk: Disk, tmp_path: Path, name: str, files: int
) -> None:
    """What was begun is removed again, so that there is room for files when this is said."""
    ended(tmp_path / "experiment")
    place = disk(f"nr_inodes={files}")
    done = ewan("exp", "archive", str(tmp_path / "experiment"), "-o", name, "--author", "Lovelace, Ada", cwd=place)
    says = "ewan: no space left in .: its disk has as many files as it can have, remove some"
    assert (done.returncode, done.stderr.splitlines()[-1]) == (2, says)
    assert not list(place.iterdir())


def test_a_compilation_says_that_its_disk_can_have_no_more_files(ewan: Ewan, disk: Disk) -> None:
    place = disk("nr_inodes=8")
    done = ewan("lab", "compile", *LAB, "-o", "out", cwd=place)
    says = "ewan: no space left in .: its disk has as many files as it can have, remove some"
    assert (done.returncode, done.stderr.splitlines()) == (2, [says])
    assert not list(place.iterdir())


@pytest.mark.parametrize("options", ["size=8k", "nr_inodes=6"])
def test_an_export_that_does_not_fit_leaves_nothing_and_keeps_what_was_there(
    ewan: Ewan, disk: Disk, tmp_path: Path, options: str
) -> None:
    """The first file has room, and the others have none."""
    ended(tmp_path / "done")
    place = disk(options)
    (place / "data").mkdir()
    (place / "data" / "points.csv").write_text("older")
    before = sorted(place.rglob("*"))
    done = ewan("results", "export", str(tmp_path / "done"), "--csv", "data", "--latex", "new/deep", cwd=place)
    says = "make room there" if options.startswith("size") else "its disk has as many files as it can have"
    assert done.returncode == 2 and f"ewan: no space left in data: {says}" in done.stderr, done.stderr
    assert sorted(place.rglob("*")) == before and (place / "data" / "points.csv").read_text() == "older"


@pytest.mark.untimed
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ("size=64k", "no space left in {}: make room there, or set EWAN_STATE to a directory of root's that has it"),
        (
            "nr_inodes=5",
            "no space left in {}: its disk has as many files as it can have, remove some, or set",
        ),
        ("ro", "{}: Read-only file system: set EWAN_STATE to a directory of root's"),
    ],
    ids=["full", "inodes", "read-only"],
)
def test_a_lab_whose_state_has_no_room_says_what_to_do(
    disk: Disk, name: str, tmp_path: Path, options: str, says: str
) -> None:
    place = disk(options)
    if options.startswith("size"):
        (place / "state").mkdir()
        subprocess.run(["dd", "if=/dev/zero", f"of={place / 'zeros'}", "bs=4k"], capture_output=True)
    command = [sys.executable, str(ROOT / "ewan" / "cli.py"), "up", *LAB, "--name", name]
    environment = os.environ | {"EWAN_STATE": str(place / "state"), "NO_COLOR": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode != 0 and done.stderr.startswith(f"ewan: {says.format(place / 'state')}"), done.stderr
    assert not list(place.glob("state/*")) and len(done.stderr.splitlines()) == 1
