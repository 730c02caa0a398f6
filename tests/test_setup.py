"""`setup.sh` and `launcher.sh`, with stand-ins for the programs that would change this machine."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from tests.conftest import ROOT

pytestmark = pytest.mark.slow

TOOLS = [
    "sh",
    "sed",
    "sort",
    "head",
    "cut",
    "sha256sum",
    "cat",
    "chmod",
    "mkdir",
    "ln",
    "dirname",
    "flock",
    "tr",
    "mktemp",
    "find",
    "stat",
    "cp",
    "ls",
    "tail",
    "grep",
]
TOOLS += ["mv", "rm", "env", "readlink"]
PIP = 'mkdir -p .venv/bin; printf "#!/bin/sh\\n" >.venv/bin/pip; chmod +x .venv/bin/pip'
BUILD = "echo built >>cargo.log; printf x >target/any/release/ewan-node; chmod +x target/any/release/ewan-node"
STUBS = {
    "python3": f'[ "$1" != -m ] || {{ {PIP}; }}',
    "cargo": f'[ "$1" != build ] && echo cargo 1.91.0 || {{ {BUILD}; }}',
    "rustc": "echo host: any",
    "cc": ":",
    "ping": ":",
    "ip": ":",
    "iperf3": ":",
    "id": "echo 0",
    "apt-get": 'echo "$@" >>apt.log',
}


class BareMachine:
    """A tree with the project's scripts, on a machine that has these programs and no others."""

    def __init__(self, place: Path) -> None:
        self.tree, self.bin, self.home = place / "a tree", place / "bin", place / "home"
        for each in (self.tree, self.bin, self.home):
            each.mkdir()
        scripts = ("images/cache.sh", "images/node/build.sh", "images/bundle/offer.sh")
        for name in (
            "setup.sh",
            "launcher.sh",
            "Makefile",
            "pyproject.toml",
            "ewan/VERSION",
            "requirements.lock",
            *scripts,
            "Cargo.lock",
        ):
            (self.tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, self.tree / name)
        self.clone(self.tree)
        for name in TOOLS:
            (self.bin / name).symlink_to(shutil.which(name) or "")
        for name, text in STUBS.items():
            self.program(name, text)

    @staticmethod
    def clone(tree: Path) -> None:
        """What `setup.sh` looks for Rust's sources in."""
        for name in (".cargo", "emulator"):
            (tree / name).mkdir()
        (tree / "emulator/main.rs").write_text("fn main() {}\n")

    def program(self, name: str, text: str) -> None:
        file = self.bin / name
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)

    def without(self, *names: str) -> None:
        for name in names:
            (self.bin / name).unlink()

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        own = {"PATH": str(self.bin), "HOME": str(self.home), "SHELL": "/bin/bash", **environment}
        return subprocess.run(words, cwd=self.tree, env=own, stdin=subprocess.DEVNULL, capture_output=True, text=True)

    def installed(self) -> list[str]:
        log = self.tree / "apt.log"
        return [line for line in log.read_text().splitlines() if " install " in line] if log.exists() else []


@pytest.fixture
def machine(tmp_path: Path) -> BareMachine:
    return BareMachine(tmp_path)


def test_what_the_tour_runs_is_installed_once(machine: BareMachine) -> None:
    machine.without("iperf3")
    first = machine.run("./setup.sh")
    assert first.returncode == 0, first.stderr
    (line,) = machine.installed()
    assert line.endswith(" iperf3")
    again = machine.run("./setup.sh")
    assert (again.returncode, again.stdout, again.stderr, len(machine.installed())) == (0, "", "", 1)
    asked = machine.run("./setup.sh", "asked")
    assert asked.returncode == 0 and len(machine.installed()) == 2


@pytest.mark.parametrize("lacks", ["apt-get", "sudo"])
def test_a_person_is_asked_for_it_where_it_cannot_be_installed(machine: BareMachine, lacks: str) -> None:
    machine.without("iperf3")
    if lacks == "apt-get":
        machine.without("apt-get")
    else:
        machine.program("id", "echo 1000")
    first = machine.run("./setup.sh")
    assert first.returncode == 0, first.stderr
    (line,) = [line for line in first.stderr.splitlines() if "iperf3" in line]
    assert "apt install iperf3" in line
    assert machine.run("./setup.sh").stderr == ""
    # What labs cannot be without is an error, and one line says all.
    machine.without("ping")
    lacking = machine.run("./setup.sh")
    assert lacking.returncode == 2
    assert lacking.stderr.splitlines()[-1].startswith("setup: missing: iputils-ping iperf3: ")


def test_nothing_is_asked_for_where_all_is_there(machine: BareMachine) -> None:
    done = machine.run("./setup.sh")
    assert done.returncode == 0 and machine.installed() == [] and "iperf3" not in done.stderr
    assert done.stderr.splitlines()[-1] == (
        "setup: done: the command is .venv/bin/ewan; make install puts it on your PATH as ewan"
    )


def test_signals_wait_until_python_can_answer_them(machine: BareMachine) -> None:
    with contextlib.suppress(FileExistsError):
        (machine.bin / "env").symlink_to(shutil.which("env") or "")
    assert machine.run("./setup.sh").returncode == 0
    python = machine.tree / ".venv/bin/python"
    python.write_text("#!/bin/sh\nwhile read name mask; do [ $name = SigBlk: ] && echo $mask; done </proc/$$/status\n")
    python.chmod(0o755)
    blocked = int(machine.run(".venv/bin/ewan").stdout, 16)
    assert all(blocked >> number - 1 & 1 for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP))


def test_the_launcher_is_installed_and_removed(machine: BareMachine) -> None:
    file = machine.home / ".local/bin/ewan"
    ewan = machine.tree / ".venv/bin/ewan"
    ewan.parent.mkdir(parents=True)
    ewan.write_text('#!/bin/sh\nprintf "%s|" "$@"\nexit 3\n')
    ewan.chmod(0o755)
    for _ in range(2):
        made = machine.run("./launcher.sh", "install")
        assert made.returncode == 0, made.stderr
        assert made.stdout.splitlines()[0] == f"installed {file}"
    # The line to type puts it on the PATH of that shell and of those to come.
    line = made.stdout.splitlines()[-1]
    shell = ["sh", "-c", f"{line}\newan lab 'a b' ''"]
    first = machine.run(*shell)
    assert (first.stdout, first.returncode) == ("lab|a b||", 3), first.stderr
    assert machine.run("sh", "-c", f". {machine.home}/.bashrc; ewan x").stdout == "x|"
    assert "zshrc" in machine.run("./launcher.sh", "install", SHELL="/usr/bin/zsh").stdout
    on_path = machine.run("./launcher.sh", "install", PATH=f"{file.parent}:{machine.bin}")
    assert on_path.stdout == f"installed {file}\n"
    machine.program("ewan", "echo another")
    assert (
        str(machine.bin / "ewan") in machine.run("./launcher.sh", "install", PATH=f"{machine.bin}:{file.parent}").stdout
    )
    assert machine.run("./launcher.sh", "uninstall").stdout == f"removed {file}\n"
    assert list(file.parent.iterdir()) == []
    assert machine.run("./launcher.sh", "uninstall").returncode == 0


def test_what_is_not_ours_stays(machine: BareMachine, tmp_path: Path) -> None:
    prefix = tmp_path / "usr"
    file = prefix / "bin/ewan"
    file.parent.mkdir(parents=True)
    for content in ("#!/bin/sh\necho the program of somebody else\n", ""):
        file.write_text(content)
        for action in ("install", "uninstall"):
            refused = machine.run("./launcher.sh", action, str(prefix))
            assert refused.returncode == 2 and len(refused.stderr.splitlines()) == 1, refused.stdout
            assert "stays" in refused.stderr
            assert file.read_text() == content
    file.unlink()
    file.symlink_to("nowhere")
    assert machine.run("./launcher.sh", "install", str(prefix)).returncode == 2 and file.is_symlink()
    # Another tree's launcher is replaced, since that is asked for, but not removed from here.
    file.unlink()
    assert machine.run("./launcher.sh", "install", str(prefix)).returncode == 0
    other = tmp_path / "other"
    shutil.copytree(machine.tree, other)
    theirs = machine.run(str(other / "launcher.sh"), "uninstall", str(prefix))
    assert theirs.returncode == 2 and str(machine.tree) in theirs.stderr and file.exists()


@pytest.mark.parametrize(("words", "said"), [(["relative"], "absolute"), ([], "HOME"), (["/proc/none"], "/proc/none")])
def test_where_nothing_can_be_installed_one_line_says_what_to_write(
    machine: BareMachine, words: list[str], said: str
) -> None:
    refused = machine.run("./launcher.sh", "install", *words, HOME="")
    assert refused.returncode == 2 and len(refused.stderr.splitlines()) == 1
    assert said in refused.stderr


def test_what_other_users_cannot_start_is_said(machine: BareMachine, tmp_path: Path) -> None:
    """A launcher for all users is none where they may not enter the way to the Python, or to the tree."""
    bin_, python = machine.tree / ".venv/bin", tmp_path / "closed/python3"
    bin_.mkdir(parents=True)
    python.parent.mkdir()
    for file in (bin_ / "ewan", python):
        file.write_text("#!/bin/sh\n")
        file.chmod(0o755)
    (machine.tree / "ewan/cli.py").write_text("")
    (bin_ / "python").symlink_to(python)
    for each in [tmp_path, *tmp_path.parents]:
        if each.stat().st_mode & 0o001 or each == Path("/tmp"):
            break
        each.chmod(0o755)
    install = ("./launcher.sh", "install", str(tmp_path / "usr"))
    assert machine.run(*install).stderr == ""
    for place, mode, said in (
        (python.parent, 0o700, "rm -r .venv"),
        (machine.tree, 0o700, "put this tree where all may read it"),
        (machine.tree / "ewan/cli.py", 0o600, "put this tree where all may read it"),
    ):
        before = place.stat().st_mode
        place.chmod(mode)
        found = machine.run(*install)
        assert found.returncode == 0 and len(found.stderr.splitlines()) == 1, found.stderr
        assert f"{place} is closed to them" in found.stderr and said in found.stderr
        assert machine.run("./launcher.sh", "install").stderr == "", "for oneself it works"
        place.chmod(before)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "ERROR: Ignored the following versions that require a different python version: 9 Requires-Python >=3.13\n"
            "ERROR: No matching distribution found for soupsieve==9",
            "setup: soupsieve==9 of requirements.lock is not for Python 3.11.2: set up with another Python",
        ),
        ("ERROR: No matching distribution found for soupsieve==9", "run make setup again when the network is back"),
        ("WARNING: Retrying", "run make setup again when the network is back"),
    ],
)
def test_a_python_that_is_too_old_is_not_the_networks_fault(machine: BareMachine, said: str, expected: str) -> None:
    pip = machine.bin / "pip-that-fails"
    pip.write_text("#!/bin/sh\ncat <<END >&2\n" + said + "\nEND\nexit 1\n")
    pip.chmod(0o755)
    own = f'[ "$1" != -m ] || {{ mkdir -p .venv/bin; cp "{pip}" .venv/bin/pip; }}'
    machine.program("python3", f'[ "$1" != --version ] || echo Python 3.11.2; {own}')
    found = machine.run("./setup.sh")
    assert found.returncode == 2 and said in found.stderr
    assert [line for line in found.stderr.splitlines() if expected in line]


def test_the_launcher_of_a_tree_that_is_not_set_up_says_so(machine: BareMachine) -> None:
    assert machine.run("./launcher.sh", "install").returncode == 0
    ended = machine.run(str(machine.home / ".local/bin/ewan"), "ps")
    assert ended.returncode == 2 and "make setup" in ended.stderr


def test_the_installed_command_goes_on_under_sudo(machine: BareMachine, tmp_path: Path) -> None:
    """As an ordinary user: what sudo is asked to run needs no PATH, and is this tree's."""
    prefix = tmp_path / "usr"
    subprocess.run([ROOT / "launcher.sh", "install", prefix], check=True, capture_output=True)
    machine.program("sudo", 'printf "%s\\n" "$@"')
    (tmp_path / "sitecustomize.py").write_text("import os\nos.geteuid = lambda: 1000\n")
    path = f"{prefix / 'bin'}:{machine.bin}:{os.environ['PATH']}"
    environment = {"PATH": path, "PYTHONPATH": str(tmp_path), "EWAN_STATE": "/run/ewan-none"}
    ended = subprocess.run(["ewan", "ps", "my lab"], cwd="/", env=environment, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stderr
    keep, python, safe, script, *words = ended.stdout.splitlines()
    assert keep.startswith("--preserve-env=") and "EWAN_STATE" in keep
    assert Path(python).is_absolute() and safe == "-P"
    assert Path(script) == ROOT / "ewan" / "cli.py" and words == ["ps", "my lab"]


def built(tree: Path) -> int:
    """How often Cargo was asked to build in a tree."""
    log = tree / "cargo.log"
    return len(log.read_text().splitlines()) if log.exists() else 0


def test_clones_of_the_same_sources_share_what_was_built(machine: BareMachine, tmp_path: Path) -> None:
    def set_up(tree: Path, **environment: str) -> None:
        machine.tree = tree
        done = machine.run("./setup.sh", **environment)
        assert done.returncode == 0, done.stderr
        assert (tree / "target/release/ewan-node").read_text() == "x"

    first, second, third = machine.tree, tmp_path / "second", tmp_path / "third"
    for other in (second, third):
        shutil.copytree(first, other)
    set_up(first)
    set_up(first)
    assert built(first) == 1
    set_up(second)
    assert built(second) == 0
    # Another source is another binary, in each clone on its own.
    (second / "emulator/main.rs").write_text("fn main() { todo!() }\n")
    set_up(second)
    set_up(first)
    assert (built(first), built(second)) == (1, 1)
    # One that somebody put there by hand does not stay.
    (first / "target/any/release/ewan-node").write_text("another one")
    set_up(first)
    assert built(first) == 1
    set_up(third, EWAN_CACHE="off")
    assert built(third) == 1 and (third / "target/node").is_dir()


def test_with_a_bundle_nothing_is_compiled(machine: BareMachine) -> None:
    machine.without("cargo", "rustc", "cc")
    lacking = machine.run("./setup.sh")
    assert lacking.returncode == 2 and "release bundle" in lacking.stderr
    bundle = machine.tree.parent / "ewan-bundle-x.tar.xz"
    bundle.touch()
    sources = machine.run("images/node/build.sh", "--sources").stdout.strip()
    prebuilt = machine.home / f".cache/ewan/node/prebuilt-{sources}"
    put = f"echo x >'{prebuilt}'; chmod +x '{prebuilt}'; sha256sum '{prebuilt}' >'{prebuilt}.sum'"
    use = f'[ "$2" != images.bundle.use ] || {{ echo "$3" >>bundles.log; [ -n "${{BAD-}}" ] || {{ {put}; }}; exit 0; }}'
    machine.program("python3", f"{use}\n{STUBS['python3']}")
    # One that is beside the tree is looked at once; one that is named, each time.
    for _ in range(2):
        assert machine.run("./setup.sh", BAD="yes").returncode == 2
    done = machine.run("./setup.sh", BUNDLE="named.tar.xz")
    assert done.returncode == 0, done.stderr
    assert (machine.tree / "bundles.log").read_text().split() == ["../ewan-bundle-x.tar.xz", "named.tar.xz"]
    assert (machine.tree / "target/release/ewan-node").read_text() == "x\n"
    noted = (machine.tree / "target/release/ewan-node.key").read_text()
    assert machine.run("./setup.sh").returncode == 0 and built(machine.tree) == 0
    assert (machine.tree / "target/release/ewan-node.key").read_text() == noted


def test_clean_removes_the_cache_where_that_is_asked_for(machine: BareMachine) -> None:
    machine.program("make", f'exec {shutil.which("make")} "$@"')
    cache = machine.home / ".cache/ewan"
    assert machine.run("./setup.sh").returncode == 0
    assert (cache / "CACHEDIR.TAG").read_text().startswith("Signature: 8a477f597d28d172789f06886806bc55\n")
    machine.program("python3", ":")
    shutil.rmtree(machine.tree / ".venv")
    assert machine.run("make", "clean").returncode == 0
    assert cache.is_dir() and not (machine.tree / "target").exists()
    assert machine.run("make", "clean", "CACHE=1").returncode == 0
    assert not cache.exists()
    # A directory that is not ours is never removed.
    cache.mkdir()
    (cache / "thesis.tex").touch()
    refused = machine.run("make", "clean", "CACHE=1")
    assert refused.returncode == 2 and "stays" in refused.stderr and (cache / "thesis.tex").exists()


def test_a_cache_that_is_no_directory_or_cannot_be_written_is_not_used(machine: BareMachine) -> None:
    refused = machine.run("./setup.sh", EWAN_CACHE="cache")
    assert refused.returncode == 2 and refused.stderr.splitlines()[-1] == (
        "ewan: EWAN_CACHE=cache: write an absolute path, or off"
    )
    done = machine.run("./setup.sh", EWAN_CACHE="/proc/none")
    assert done.returncode == 0 and (machine.tree / "target/node").is_dir(), done.stderr
