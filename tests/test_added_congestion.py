"""Congestion controls that a user adds run in the virtual clock; a broken one ends in one line that helps."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

from ewan.labs.base import codec
from ewan.labs.kernels.library import AddedKernel, KernelSource
from ewan.labs.runtime import kernel
from tests.conftest import Ewan

ROOT = Path(__file__).parent.parent
SOURCE = (ROOT / "labs/congestion/tests/tcp_mine.c").read_text()
PROGRAM = ROOT / "labs/congestion/tests/tcp_mine.bpf.c"
TRANSFER = ("transfer", "dumbbell", "--rtt", "20ms", "--rate", "20M", "--for", "2s", "--runtime", "virtual")
SCENARIO = """lab: {topology: dumbbell, rtt: 20ms, wan: {rate: 20Mbit/s}}
sweep: {increase: [1, 4]}
cc:
  mine: {source: tcp_mine.c, parameters: {alpha: "${increase}"}}
steps:
  - {name: bulk, from: left1, to: right1, for: 2s, congestion: mine, bulk: }
"""
AVOIDS = "\tstruct tcp_sock *tp = tcp_sk(sk);\n\n\tif (!tcp_is_cwnd_limited(sk))"

pytestmark = pytest.mark.virtual


@pytest.fixture(autouse=True)
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    return tmp_path / "data/ewan/congestion"


def write(place: Path, name: str, *changes: tuple[str, str]) -> Path:
    text = SOURCE
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    path = place / name
    path.write_text(text)
    return path


def series(place: Path, control: str) -> list[dict[str, str]]:
    with next(place.glob(f"results/*/{control}/series.csv")).open(newline="") as file:
        return list(csv.DictReader(file))


def test_an_added_control_is_listed_runs_and_is_removed(ewan: Ewan, tmp_path: Path, library: Path) -> None:
    (tmp_path / "mine.h").write_text("#define BETA_OF_256 128\n")
    source = write(tmp_path, "tcp_mine.c", ("#include <net/tcp.h>", '#include <net/tcp.h>\n#include "mine.h"'))
    done = ewan("cc", "add", str(source))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("mine added; parameters: alpha (int)\n")
    listed = ewan("cc", "list", "--json")
    assert listed.returncode == 0, listed.stderr
    assert '"mine"' in listed.stdout and '"cubic"' in listed.stdout
    ran = ewan(*TRANSFER, "--cc", "mine,reno", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    mine, reno = (series(tmp_path, name) for name in ("mine", "reno"))
    losses = [int(row.pop("cc.losses")) for row in mine]
    assert mine == reno and len(mine) > 100  # the same algorithm sends the same packets
    assert losses == sorted(losses) and losses[0] == 0 < losses[-1] <= int(mine[-1]["retransmitted_segments"])
    assert ewan("cc", "remove", "mine").stdout == "mine removed\n"
    assert not (library / "tcp_mine").exists()
    refused = ewan(*TRANSFER, "--cc", "mine", cwd=tmp_path)
    assert refused.returncode == 2
    assert "congestion control mine: the virtual kernel has none of that name" in refused.stderr


def test_a_control_for_an_added_kernel_is_compiled_for_it(ewan: Ewan, tmp_path: Path, library: Path) -> None:
    default = kernel.kernel(print)
    place = tmp_path / "data/ewan/kernels/twin"
    place.mkdir(parents=True)
    for name in ("linux", "linux.sum", "headers.tar.xz"):
        (place / name).symlink_to(default.with_name(name))
    source = KernelSource("tree", "twin", str(tmp_path), "0" * 64, "")
    twin = AddedKernel("twin", "6.12", source, (), (), {}, (), "1" * 64, "2" * 64, ("cubic", "reno"), 1.0)
    (place / "kernel.json").write_bytes(codec.document(twin))
    done = ewan("cc", "add", str(write(tmp_path, "tcp_mine.c")), "--kernel", "twin")
    assert done.returncode == 0, done.stderr
    assert done.stdout.endswith("--cc mine,cubic --runtime virtual --kernel twin\n")
    assert json.loads((library / "tcp_mine/control.json").read_text())["kernel"] == "twin"
    assert "mine" not in json.loads(ewan("cc", "list", "--json").stdout)["virtual"]
    assert re.search(r"mine +kernel twin +– +tcp_mine.c", ewan("cc", "list").stdout)
    ran = ewan(*TRANSFER, "--cc", "mine", "--kernel", "twin", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    none = ewan("cc", "add", str(tmp_path / "tcp_mine.c"), "--kernel", "none")
    assert none.returncode == 2
    assert "kernel none: there is none of this name: the library has twin" in none.stderr


def test_a_program_of_bpf_runs_as_a_module(ewan: Ewan, tmp_path: Path) -> None:
    done = ewan("cc", "add", str(PROGRAM))
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("mine added; parameters: none\n")
    ran = ewan(*TRANSFER, "--cc", "mine,reno", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    mine, reno = (series(tmp_path, name) for name in ("mine", "reno"))
    assert [row | {"cc.losses": ""} for row in reno] == [row | {"cc.losses": ""} for row in mine]
    assert int(mine[-1]["cc.losses"]) > 0


def test_a_program_of_bpf_that_is_no_module_is_refused_with_its_line(ewan: Ewan, tmp_path: Path) -> None:
    path = tmp_path / "tcp_mine.bpf.c"
    path.write_text(PROGRAM.read_text().replace("state_of(sk)->losses++;", "bpf_map_lookup_elem(0, 0);"))
    done = ewan("cc", "add", str(path))
    assert done.returncode == 2
    assert "tcp_mine.bpf.c:36: bpf_map_lookup_elem: a native module does not have it" in done.stderr


@pytest.mark.parametrize(
    ("name", "changes", "line"),
    [
        ("tcp_syntax.c", [("mine->losses = 0;", "mine->loss = 0;")], "tcp_syntax.c: it does not compile: 1 error of"),
        ("tcp_licence.c", [('("GPL")', '("Proprietary")')], 'needs MODULE_LICENSE("GPL")'),
        (
            "tcp_taken.c",
            [('"mine"', '"cubic"')],
            "tcp_taken.c: the virtual kernel has a congestion control cubic already: write",
        ),
        (
            "tcp_undo.c",
            [("\t.undo_cwnd = tcp_reno_undo_cwnd,\n", "")],
            "a congestion control needs ssthresh, undo_cwnd",
        ),
        ("tcp_external.c", [('"mine"', '"external"')], "the name external is kept for ewan transfer --program"),
        ("tcp_none.c", [("return tcp_register_congestion_control(&mine);", "return 0;")], "tcp_register_congestion"),
        ("tcp-mine.c", [], "write the name of a C source of small letters, digits and _, such as tcp_mine.c"),
    ],
)
def test_a_control_that_cannot_be_used_is_not_added(
    ewan: Ewan, tmp_path: Path, library: Path, name: str, changes: list[tuple[str, str]], line: str
) -> None:
    done = ewan("cc", "add", str(write(tmp_path, name, *changes)))
    assert done.returncode == 2
    assert line in done.stderr.splitlines()[-1]
    assert not library.exists()


@pytest.mark.parametrize(
    ("statement", "fault"),
    [("*(volatile int *)NULL = 1;", "uses an address at which there is no memory"), ("alpha = 0;", "divides by zero")],
)
def test_a_control_that_breaks_the_kernel_ends_its_run_and_no_other(
    ewan: Ewan, tmp_path: Path, statement: str, fault: str
) -> None:
    source = write(
        tmp_path, "tcp_broken.c", ('"mine"', '"broken"'), (AVOIDS, AVOIDS.replace("\n\n", f"\n\n\t{statement}\n"))
    )
    assert ewan("cc", "add", str(source)).returncode == 0
    broken = ewan(*TRANSFER, "--cc", "broken,reno", cwd=tmp_path)
    assert broken.returncode == 2
    assert f"module tcp_broken {fault}" in broken.stderr.splitlines()[-1]
    assert (next(tmp_path.glob("results/*")) / "reno/traffic/traffic.json").exists()


def test_a_control_whose_state_is_not_known_runs_without_its_columns(ewan: Ewan, tmp_path: Path) -> None:
    two = ("struct mine {", "struct first {\n\tu32 a;\n};\n\nstruct second {")
    pointer = ("struct mine *mine = inet_csk_ca(sk);", "struct second *mine = inet_csk_ca(sk);")
    other = ("\tmine->losses = 0;", "\tstruct first *first = inet_csk_ca(sk);\n\tmine->losses = first->a * 0;")
    size = ("sizeof(struct mine)", "sizeof(struct second)")
    source = write(tmp_path, "tcp_two.c", ('"mine"', '"two"'), two, pointer, other, size)
    assert ewan("cc", "add", str(source)).returncode == 0
    ran = ewan(*TRANSFER, "--cc", "two", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert "the series has no columns of the state of two: tcp_two.c: no struct is the state of two: call" in ran.stderr
    assert not [name for name in series(tmp_path, "two")[0] if name.startswith("cc.")]


def test_what_is_damaged_is_named(ewan: Ewan, tmp_path: Path, library: Path) -> None:
    assert ewan("cc", "add", str(write(tmp_path, "tcp_mine.c"))).returncode == 0
    (library / "tcp_mine/tcp_mine.c").write_text("changed")
    changed = ewan(*TRANSFER, "--cc", "mine", cwd=tmp_path)
    assert changed.returncode == 2 and "tcp_mine.c was changed: ewan cc add it again" in changed.stderr
    (library / "tcp_mine/control.json").write_text("{")
    damaged = ewan("cc", "list")
    assert damaged.returncode == 2 and "and add its source again" in damaged.stderr


def test_a_scenario_with_its_source_is_one_folder_that_reruns_elsewhere(
    ewan: Ewan, tmp_path: Path, library: Path
) -> None:
    """The archive has the source. Its parameter is varied, and a second run of the archive gives the same bytes."""
    write(tmp_path, "tcp_mine.c")
    (tmp_path / "x.scenario.yaml").write_text(SCENARIO)
    ran = ewan("run", "x.scenario.yaml", "--runtime", "virtual", cwd=tmp_path)
    assert ran.returncode == 0, ran.stderr
    (tmp_path / "tcp_mine.c").unlink()
    archive = next(tmp_path.glob("results/*/x.tar.zst"))
    again = ewan("exp", "rerun", "--trust", str(archive), cwd=tmp_path)
    assert again.returncode == 0 and again.stdout.rstrip().endswith("identical"), again.stderr
    kept = [path.read_text() for path in tmp_path.glob("results/*/sources/tcp_mine-*/tcp_mine.c")]
    assert kept == [SOURCE, SOURCE], "of the experiment, and of its repetition"
    assert b"cc.losses" in next(archive.parent.glob("runs/*/series.parquet")).read_bytes()
    flows = [path.read_bytes() for path in sorted(archive.parent.glob("runs/*/series.parquet"))]
    assert len(flows) == 2 and flows[0] != flows[1], "the parameter has an effect"


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("alpha:", "alpah:", 'tcp_mine.c: unknown parameter alpah of the module, write "alpha"'),
        ("${increase}", "${increase}x", 'tcp_mine.c: parameter alpha "1x": write a whole number'),
        ("mine:", "mini:", "module tcp_mine: it registers no congestion control mini: the kernel has reno"),
        ("tcp_mine.c", "tcp_none.c", "x.scenario.yaml:4: cc.mine.source"),
    ],
)
def test_a_scenario_whose_control_cannot_be_used_runs_nothing(
    ewan: Ewan, tmp_path: Path, old: str, new: str, line: str
) -> None:
    write(tmp_path, "tcp_mine.c")
    text = SCENARIO.replace(old, new).replace("congestion: mine", f"congestion: {'mini' if new == 'mini:' else 'mine'}")
    (tmp_path / "x.scenario.yaml").write_text(text)
    refused = ewan("run", "x.scenario.yaml", "--runtime", "virtual", cwd=tmp_path)
    assert refused.returncode == 2 and line in refused.stderr.splitlines()[-1]
    assert not list(tmp_path.glob("results/2*"))
