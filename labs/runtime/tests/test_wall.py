"""The wall around the virtual kernel: a program of this machine behind it tries to get out, as root and as an ordinary
user, with Landlock or namespaces alone and with both; what is shown; what a step that mounts the machine's files gets.
"""

from __future__ import annotations

import os
import pwd
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import orjson
import pytest

from ewan.labs import host
from ewan.labs.base import cache
from ewan.labs.base.codec import replace
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.compile import compile
from ewan.labs.node_overrides import NodeOverrides
from ewan.labs.plan import Plan
from ewan.labs.runtime import kernel, wall
from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.program import Command, Program
from ewan.labs.runtime.progress import Watch
from ewan.labs.runtime.run_directory import root_of
from ewan.labs.runtime.standstill import Standstill
from ewan.labs.runtime.tests.lab import BINARY
from ewan.labs.runtime.virtual import VirtualRuntime
from ewan.labs.spec import from_template

pytestmark = pytest.mark.slow

ESCAPES = Path(__file__).resolve().with_name("escapes.py")
ORDINARY = 61001
MEMORY = 1 << 26
MIB = 1 << 20
PROCESSES = 420
NO_TERMINAL = b"[    0.000000] check_one_sigio failed, errno = 13\n"
"""User-Mode Linux looks for a terminal of the machine as it starts, which Landlock refuses. It needs none."""


@dataclass
class Place:
    """Directories of one user outside of all homes, which others of this machine may enter."""

    directory: Path
    uid: int

    def made(self, name: str, text: str = "") -> Path:
        path = self.directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for each in (path, path.parent):
            os.chown(each, self.uid, self.uid)
        return path

    def folder(self, name: str) -> Path:
        path = self.directory / name
        path.mkdir(parents=True)
        os.chown(path, self.uid, self.uid)
        return path


@pytest.fixture(params=[0, ORDINARY], ids=["root", "ordinary"])
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    assert os.geteuid() == 0, "this test becomes another user: run it as root"
    with tempfile.TemporaryDirectory(prefix="ewan-wall-", dir="/var/tmp") as directory:
        Path(directory).chmod(0o755)
        os.chown(directory, request.param, request.param)
        yield Place(Path(directory), request.param)


def behind(
    place: Place, words: list[str | Path], reads: list[Path], only: str = "", *, more: tuple[str | Path, ...] = ()
) -> Any:
    """What a program says behind the wall; its limits are small."""
    memory = Path(tempfile.mkdtemp(prefix=f"ewan-{os.getpid()}-", dir="/dev/shm"))
    os.chown(memory, place.uid, place.uid)
    binary = place.directory / "ewan-node"
    if not binary.exists():
        shutil.copy(BINARY, binary)
    real = dict.fromkeys(path.resolve() for path in reads)
    shown: list[str | Path] = [word for path in real for word in ("--read", path)]
    shown += [*(word for path in reads if path not in real for word in ("--link", path)), *more]
    words = [word if word != "MEMORY" else memory for word in words]
    command = [
        *(binary, "launch", *shown, "--write", place.directory / "run", "--memory-in", memory),
        *("--memory", str(MEMORY), "--processes", str(PROCESSES), *(("--only", only) if only else ()), "--", *words),
    ]
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            user=place.uid,
            group=place.uid,
            extra_groups=[],
            timeout=60,
        )
    finally:
        shutil.rmtree(memory, ignore_errors=True)
    assert done.returncode == 0, done.stderr + done.stdout
    return done.stdout


def python(place: Place) -> Path:
    """For root the one of an environment, which is shown with its installation; others may not enter root's."""
    return Path(sys.executable if place.uid == 0 else shutil.which("python3", path="/usr/bin:/bin") or "python3")


@pytest.mark.parametrize("only", ["", "landlock", "namespaces"])
def test_nothing_gets_out(place: Place, only: str) -> None:
    run, secret = place.folder("run"), place.made("home/.ssh/id", "secret")
    outside, shown = place.folder("outside"), place.made("folder/data", "data")
    escapes = place.made("program/escapes.py", ESCAPES.read_text())
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as unix,
        socket.socket(socket.AF_UNIX) as abstract,
        socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as datagrams,
        subprocess.Popen(["sleep", "60"], user=place.uid, group=place.uid) as victim,
    ):
        unix.bind(str(place.directory / "socket"))
        (place.directory / "socket").chmod(0o777)
        unix.listen()
        datagrams.bind(str(place.directory / "datagrams"))
        (place.directory / "datagrams").chmod(0o777)
        abstract.bind(f"\0ewan-wall-{os.getpid()}")
        abstract.listen()
        given = {
            "run": str(run),
            "uid": place.uid,
            "secret": str(secret),
            "outside": str(outside),
            "shown": str(shown),
            "pid": victim.pid,
            "tcp": tcp.getsockname()[1],
            "socket": str(place.directory / "socket"),
            "datagrams": str(place.directory / "datagrams"),
            "abstract": f"ewan-wall-{os.getpid()}",
            "forks": 0 if only == "landlock" else 2 * PROCESSES,
            "fills": 0 if only == "landlock" else 4 * MEMORY,
            "memory": "MEMORY",
        }
        script = "import json, sys; sys.argv[1] = sys.argv[1].replace('MEMORY', sys.argv[2]); "
        script += f"exec(compile(open({str(escapes)!r}).read(), 'escapes', 'exec'))"
        program = python(place)
        words: list[str | Path] = [program, "-I", "-c", script, orjson.dumps(given).decode(), "MEMORY"]
        try:
            told = orjson.loads(
                behind(place, words, [*map(Path, wall.SYSTEM), *wall.of_program(program), escapes, shown.parent], only)
            )
        finally:
            victim.kill()
        assert stat.S_IMODE(shown.stat().st_mode) == 0o644 and os.listxattr(shown) == []
    assert told["worked"] == []
    assert told["shown"] == "data", "what is shown can be read"
    assert told["descriptors"] == []
    assert (run / "b").read_text() == "written", "the run's directory can be written to"
    assert all(path.is_file() or path.is_dir() for path in run.rglob("*"))
    assert list(outside.iterdir()) == []
    if only != "landlock":
        assert told["forks"] < PROCESSES
        assert told["fills"] <= MEMORY + 80 * MIB


@pytest.mark.parametrize("only", ["landlock", "namespaces"])
def test_what_is_a_link_by_now_shows_nothing_of_what_it_leads_to(place: Place, only: str) -> None:
    """Whoever looked at the path saw a folder there."""
    place.folder("run")
    place.made("home/id", "secret")
    place.made("shown/data", "data")
    link, below = place.directory / "link", place.directory / "below"
    link.symlink_to("home")
    below.symlink_to("shown")
    shown = ("--read", link, "--read", link / "id", "--read", place.directory / "shown", "--link", below)
    script = f"cat {below}/data; for file in {link}/id {place.directory}/home/id; do cat $file 2>&1; done; true"
    said = behind(place, ["sh", "-c", script], [*map(Path, wall.SYSTEM)], only, more=shown)
    assert said.startswith("data") and "secret" not in said


def test_only_a_build_executes_what_it_has_made(place: Place) -> None:
    """The directory of a run is written to, and nothing in it is executed; a build makes its own tools."""
    script = "import os, sys\nos.chdir(sys.argv[1])\nopen('tool', 'w').write('#!/bin/sh\\necho made')\n"
    script += "os.chmod('tool', 0o755)\nprint(os.popen('./tool 2>&1').read())\n"
    said = {}
    for option in ("--write", "--build"):
        directory = place.folder(option.strip("-"))
        words: list[str | Path] = [BINARY, "launch", *wall.readable(map(Path, wall.SYSTEM)), option, directory]
        words += ["--", "/usr/bin/python3", "-c", script, directory]
        done = subprocess.run(
            words, user=place.uid, group=place.uid, extra_groups=[], capture_output=True, text=True, check=False
        )
        said[option] = done.stdout.strip()
    assert said["--build"] == "made" and "Permission denied" in said["--write"]


def test_without_any_wall_nothing_is_started(place: Place) -> None:
    """As on a kernel that has neither: one of the two is asked for from within, where it is refused."""
    place.folder("run")
    inner = f"{place.directory}/ewan-node launch --read /usr --write {place.directory}/run --only namespaces -- true"
    script = f"{inner}; echo $?"
    said = behind(place, ["sh", "-c", script + " 2>&1"], [*map(Path, wall.SYSTEM), place.directory / "ewan-node"])
    assert said.splitlines()[-1] == "2"


def test_which_walls_there_are_is_told() -> None:
    told = wall.found(BINARY)
    assert told.landlock > 0 and told.namespaces is True


def lab() -> Plan:
    return compile(from_template("dumbbell", {"rtt": "2ms", "rate": "100M", "ip": "4"}), host.virtual_facts())


def doing(*words: str, needs: tuple[str, ...] = ()) -> Program:
    return Program(commands=(Command("left1", words),), longest_ns=60 * NS_PER_SECOND, needs=needs)


def executable(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)
    return path


def test_of_a_home_plain_files_are_shown_and_of_a_folder_in_it_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("lab/probe.py", ".ssh/id", "notes", ".netrc"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert wall.of_folder(tmp_path) == [tmp_path / "notes"]
    assert wall.of_folder(tmp_path / "lab") == [tmp_path / "lab"]
    assert not any(path.is_dir() for folder in ("/", "/etc", "/tmp") for path in wall.of_folder(Path(folder)))


def test_a_program_brings_its_installation_and_its_interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    python = executable(tmp_path / ".pyenv/3.11/bin/python3.11", "")
    (tmp_path / "venv/bin").mkdir(parents=True)
    (tmp_path / "venv/bin/python").symlink_to(python)
    tool = executable(tmp_path / "venv/bin/tool", f"#!{tmp_path}/venv/bin/python\n")
    cargo = executable(tmp_path / ".cargo/bin/tool", "\x7fELF")
    (tmp_path / ".cargo/credentials.toml").touch()
    line = f"{tool} --fast; X={cargo} | cat {tmp_path}/.cargo/credentials.toml"
    shown = wall.visible(lab(), doing("sh", "-c", line), [])
    assert {tmp_path / "venv/bin", tmp_path / "venv/lib", tmp_path / "venv/pyvenv.cfg"} <= set(shown)
    assert {python.parent, python.parent.parent / "lib", cargo.parent} <= set(shown)
    assert not {tmp_path, tmp_path / ".cargo", tmp_path / ".cargo/credentials.toml"} & set(shown)


def test_what_a_script_or_a_program_lies_beside_is_not_shown(tmp_path: Path) -> None:
    """A script may name anything as its interpreter, and a program may lie beside anything."""
    (tmp_path / ".ssh").mkdir()
    secret = tmp_path / ".ssh/id"
    secret.write_text("secret")
    script = executable(tmp_path / "lab/script", f"#!{secret}\n")
    missing = executable(tmp_path / "lab/missing", f"#!{tmp_path}/.ssh/none\n")
    system = executable(tmp_path / "lab/system", "#!/etc/shadow\n")
    link = tmp_path / "lab/link"
    link.symlink_to(executable(tmp_path / "srv/keys/tool", "\x7fELF"))
    words = " ".join(map(str, (script, missing, system, link)))
    shown = set(wall.visible(lab(), doing("sh", "-c", words), [])) - set(wall.visible(lab(), doing("true"), []))
    assert shown == {script, missing, system, link, link.resolve()}


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A place where everybody may go, with a private directory of ours in it and a folder of another user's."""
    assert os.geteuid() == 0, "this test gives files to another user: run it as root"
    monkeypatch.delenv("SUDO_UID", raising=False)
    with tempfile.TemporaryDirectory(prefix="ewan-wall-", dir="/var/tmp") as directory:
        here = Path(directory)
        here.chmod(0o755)
        executable(here / "keys/key", "secret")
        (here / "keys").chmod(0o700)
        yield here


def given_away(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, ORDINARY, ORDINARY, follow_symlinks=False)


def reads(program: Program) -> set[str]:
    words = wall.options(lab(), program, [Path("/nonexistent/folder")], Path("/nonexistent/run"), [])
    return {path for path in words[1 : words.index("--write") : 2] if path.startswith("/var/tmp/")}


@pytest.mark.parametrize("name", ["lib", "lib64", "libexec", "pyvenv.cfg", "bin", ""])
def test_what_another_user_links_beside_a_program_is_not_shown(others: Path, name: str) -> None:
    tool = executable(others / "theirs/bin/tool", "#!/bin/sh\n")
    if name == "bin":
        shutil.rmtree(tool.parent)
        tool = others / "theirs/bin/key"
    (others / "theirs" / name if name else others / "theirs/bin/key").symlink_to(others / "keys")
    given_away(others / "theirs")
    words = [str(tool), *([] if name else [f"{tool.parent}/key/key"])]
    shown = reads(doing(*words)) | reads(doing("sh", "-c", " ".join(words)))
    assert not [path for path in shown if Path(path).resolve().is_relative_to(others / "keys")]
    assert name == "bin" or str(tool.parent) in shown


def test_what_another_user_s_script_names_is_shown_where_he_could_read_it(others: Path) -> None:
    for name, mode in (("open", 0o755), ("closed", 0o700)):
        executable(others / name / "bin/python", "\x7fELF")
        (others / name / "lib").mkdir()
        (others / name / "lib").chmod(mode)
    scripts = [executable(others / f"theirs/{name}", f"#!{others}/{name}/bin/python\n") for name in ("open", "closed")]
    given_away(others / "theirs")
    shown = reads(doing(*map(str, scripts)))
    assert {f"{others}/open/lib", f"{others}/open/bin"} <= shown and f"{others}/closed/lib" not in shown


def test_environments_of_other_users_bring_their_interpreter(others: Path) -> None:
    executable(others / "theirs/conda/bin/python3.11", "\x7fELF")
    (others / "theirs/conda/lib").mkdir()
    venv = others / "theirs/venv"
    (venv / "bin").mkdir(parents=True)
    (venv / "lib").mkdir()
    (venv / "lib64").symlink_to("lib")
    (venv / "bin/python").symlink_to(others / "theirs/conda/bin/python3.11")
    executable(venv / "bin/tool", f"#!{venv}/bin/python\n")
    given_away(others / "theirs")
    wanted = {f"{others}/theirs/{name}" for name in ("conda/bin", "conda/lib", "venv/bin", "venv/lib", "venv/lib64")}
    assert wanted <= reads(doing(f"{venv}/bin/tool"))


def test_what_is_needed_and_led_elsewhere_meanwhile_is_not_shown(others: Path) -> None:
    (others / "theirs").mkdir()
    (others / "theirs/real").mkdir()
    (others / "theirs/data").symlink_to("real")
    given_away(others / "theirs")
    needs = (f"{others}/theirs/data", f"{others}/theirs/real")
    assert reads(doing("true", needs=needs)) == set(needs)
    (others / "theirs/data").unlink()
    (others / "theirs/data").symlink_to(others / "keys")
    given_away(others / "theirs")
    assert reads(doing("true", needs=needs)) == {f"{others}/theirs/real"}
    assert reads(doing("true", needs=needs[:1])) == set()


def test_a_home_that_is_needed_shows_plain_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / ".ssh").mkdir()
    (tmp_path / "notes").touch()
    assert wall.of_needed(tmp_path, ()) == [tmp_path / "notes"]


def test_somebody_elses_home_is_one_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mail").mkdir()
    (tmp_path / "notes").touch()
    homes = {tmp_path.stat().st_uid: str(tmp_path), 54321: "/home/me"}
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    monkeypatch.setattr(pwd, "getpwuid", lambda uid: SimpleNamespace(pw_dir=homes[uid]))
    assert wall.of_folder(tmp_path) == [tmp_path / "notes"]


def test_nothing_of_etc_is_shown_as_a_folder() -> None:
    assert wall.of_folder(Path("/etc")) == wall.of_folder(Path("/etc/ssl/private")) == []


def test_a_description_s_own_path_is_a_place_of_programs(tmp_path: Path) -> None:
    plan = lab()
    node = replace(plan.nodes[0], own=NodeOverrides(env={"PATH": f"{tmp_path}/bin:/usr/bin"}))
    (tmp_path / "bin").mkdir()
    assert tmp_path / "bin" in wall.visible(replace(plan, nodes=(node, *plan.nodes[1:])), doing("true"), [])


def test_a_run_that_starts_no_program_is_shown_none(tmp_path: Path) -> None:
    words = wall.options(lab(), Program(longest_ns=1), [tmp_path], tmp_path / "run", [Path("/kernel")])
    shown = words[1 : words.index("--write") : 2]
    assert shown[0] == "/kernel" and {os.path.realpath(path) for path in shown[1:]} == {
        os.path.realpath(path) for path in wall.SYSTEM
    }


def test_a_word_that_is_no_switch_of_the_wall_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(wall.VARIABLE, "no")
    with pytest.raises(LabError, match="EWAN_WALL=no: write off"):
        wall.off()


def test_a_kernel_that_never_begins_is_ended() -> None:
    seconds = [0.0]
    watch = cast(Watch, SimpleNamespace(still=lambda: (round(seconds[0] * NS_PER_SECOND), None)))
    standstill = Standstill(watch, os.getpid())
    assert standstill.found(20, 300, NS_PER_SECOND) is None
    seconds[0] = 301
    found = standstill.found(20, 300, NS_PER_SECOND)
    assert found is not None and found[1].virtual_ns == 0


@pytest.mark.virtual
def test_a_step_that_mounts_the_machine_s_files_gets_what_is_shown_and_nothing_else() -> None:
    with tempfile.TemporaryDirectory(prefix="ewan-wall-", dir="/var/tmp") as directory:
        here = Path(directory)
        for name in ("home/.ssh/id", "folder/data", "needed/data"):
            (here / name).parent.mkdir(parents=True)
            (here / name).write_text(name)
        run = here / "results/run"
        tries = [
            *(f"mkdir -p /tmp/m; mount -t hostfs none /tmp/m -o {here}/home && cat /tmp/m/.ssh/id", "umount /tmp/m"),
            *(f"mount -t hostfs none /tmp/m -o {here} && echo x > /tmp/m/written", "umount /tmp/m"),
            *(f"mount -t hostfs none /tmp/m -o {here}/folder && echo x > /tmp/m/written", "umount /tmp/m"),
            *(f"mount -t hostfs none /tmp/m -o {root_of(run)} && echo x > /tmp/m/ewan-node", "umount /tmp/m"),
            *(f"ln -s {here}/home $EWAN_OUT/link", f"ln {here}/folder/data $EWAN_OUT/hard", "mkfifo $EWAN_OUT/pipe"),
            *("cat /proc/1/environ | tr '\\0' '\\n'", f"cat {here}/folder/data {here}/needed/data; echo; pwd"),
        ]
        program = doing("sh", "-c", "\n".join(tries), needs=(str(here / "needed"),))
        os.environ["EWAN_TEST_SECRET"] = "hidden"
        try:
            image = kernel.kernel(print)
            result = VirtualRuntime(BINARY, image, folders=[here / "folder"]).run(lab(), program, run)
        finally:
            del os.environ["EWAN_TEST_SECRET"]
        said = (result.directory / "commands/1-left1.out").read_text()
        assert said.splitlines()[-1] == str(here / "folder")
        assert "folder/dataneeded/data" in said and "id" not in said.split() and "hidden" not in said
        assert not list(here.rglob("written")) and not root_of(run).exists()
        assert all(path.is_file() or path.is_dir() for path in run.rglob("*") if not path.is_symlink())
        assert not [path for path in run.rglob("*") if path.is_symlink()]


def without_namespaces(*words: str | Path) -> list[str]:
    """The command on a machine where nobody can make a namespace: there Landlock is the only wall."""
    refuse = 'for kind in user mnt; do echo 0 > /proc/sys/user/max_${kind}_namespaces; done; exec "$@"'
    return ["unshare", "--user", "--map-root-user", "sh", "-c", refuse, "sh", *map(str, words)]


@pytest.mark.virtual
def test_results_are_the_same_behind_each_wall_and_without_one() -> None:
    """The programs are of a virtual environment and of a hidden directory of a home; a file beside them is hidden."""
    walls = orjson.loads(subprocess.check_output(without_namespaces(BINARY, "walls")))
    assert walls["landlock"] > 0 and walls["namespaces"] is not True
    with tempfile.TemporaryDirectory(prefix="ewan-wall-", dir="/var/tmp") as directory:
        here = Path(directory)
        (here / "secret").write_text("secret")
        (here / "folder").mkdir()
        venv.create(here / "folder/venv", symlinks=True)
        (packages,) = (here / "folder/venv/lib").glob("python3*/site-packages")
        (packages / "installed.py").write_text(
            f"try: print(open('{here}/secret').read())\nexcept OSError: print('hidden')\n"
        )
        tool = here / "home/.cargo/bin/tool"
        tool.parent.mkdir(parents=True)
        shutil.copy("/bin/echo", tool)
        steps = [f"right1: {tool} of cargo", "right1: iperf3 -s -1", "left1 at 100ms: iperf3 -c right1 -t 1 -J"]
        steps += ["left1: venv/bin/python -c 'import installed'"]
        command = [
            sys.executable,
            str(Path(__file__).resolve().parents[3] / "ewan" / "cli.py"),
            "lab",
            "batch",
            "dumbbell",
        ]
        command += ["--runtime", "virtual", *(word for step in steps for word in ("--do", step))]
        home = {"HOME": str(here / "home"), "EWAN_CACHE": str(cache.root(os.environ) or "off")}
        found: list[dict[str, bytes]] = []
        for words, chosen in ((command, {}), (without_namespaces(*command), {}), (command, {"EWAN_WALL": "off"})):
            ran = subprocess.run(
                words, cwd=here / "folder", env=os.environ | home | chosen, capture_output=True, text=True, check=False
            )
            assert ran.returncode == 0, ran.stdout + ran.stderr
            (run,) = (here / "folder/results").iterdir()
            files = (path for path in run.rglob("*") if path.is_file() and path.name != "wall.json")
            found.append({str(path.relative_to(run)): path.read_bytes() for path in files})
            found[-1]["console.log"] = found[-1]["console.log"].replace(NO_TERMINAL, b"")
            shutil.rmtree(run)
        sees = "commands/4-left1.out"
        assert [results.pop(sees) for results in found] == [b"hidden\n", b"hidden\n", b"secret\n"]
        assert found[0]["commands/1-right1.out"] == b"of cargo\n" and len(found[0]) > 8
        assert found[0] == found[1] == found[2]


@pytest.mark.virtual
def test_the_guest_opens_no_device_of_the_machine(tmp_path: Path) -> None:
    """Where /dev/null is a plain file, as in some containers, it is read-only behind the wall."""
    (tmp_path / "null").touch()
    command = [
        sys.executable,
        Path(__file__).resolve().parents[3] / "ewan" / "cli.py",
        "lab",
        "batch",
        "dumbbell",
        "--runtime",
        "virtual",
        "--do",
        "left1: true",
    ]
    line = f"mount --bind {tmp_path}/null /dev/null && exec {shlex.join(map(str, command))}"
    ran = subprocess.run(["unshare", "-m", "sh", "-c", line], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.virtual
def test_what_a_scenario_needs_must_be_there(tmp_path: Path) -> None:
    program = doing("true", needs=(str(tmp_path / "data"),))
    with pytest.raises(LabError, match=r"needs: .*/data: is not on this machine"):
        VirtualRuntime(BINARY, Path("/bin/true")).run(lab(), program, tmp_path / "run")
