"""The wheel: its contents, and that a person without a compiler and without root installs and uses it."""

from __future__ import annotations

import contextlib
import os
import pwd
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import psutil
import pytest

from ewan import __version__
from ewan.labs.base import cache
from ewan.labs.base.product import ROOT
from images.product.build import versions
from images.wheel import hook
from tests import action

MOST_BYTES = 12_000_000
MOST_DOWNLOADED_BYTES = 100_000_000
"""Of a plain installation with all that it needs."""
LONGEST_S = 60.0
"""For the installation of a folder of wheels, a lab, an experiment and its report."""
NOBODY = "nobody"
PROGRAMS = {"ewan/programs/ewan-node", "ewan/programs/linux.xz", "ewan/programs/linux.config"}


def built(place: Path) -> Path:
    """The wheel of this tree, made in a directory."""
    command: list[str | Path] = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", place]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return next(place.glob("*.whl"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("wheel"))


@pytest.mark.virtual
def test_the_wheel_holds_the_product_and_no_more(wheel: Path, tmp_path: Path) -> None:
    assert wheel.name == f"ewan-{__version__}-py3-none-manylinux_2_17_x86_64.whl"
    assert wheel.stat().st_size <= MOST_BYTES
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        runs = archive.getinfo("ewan/programs/ewan-node").external_attr >> 16 & 0o111
        crates = archive.read("ewan/CRATES").decode()
    assert {name.partition("/")[0] for name in names} == {"ewan", f"ewan-{__version__}.dist-info"}
    assert runs == 0o111
    assert {name for name in names if name.startswith("ewan/programs/")} == PROGRAMS
    unwanted = [name for name in names if re.search(r"(^|/)(tests|target|__pycache__|node_modules)/|\.pyc$", name)]
    assert not unwanted
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    library = {f"ewan/{name}" for name in listed if name.startswith("labs/library/")}
    patches = {f"ewan/{name}" for name in listed if name.startswith("images/kernel/patches/")}
    assert library <= names and patches <= names, "labs for people, and the kernel's sources as its licence asks"
    licences = {f"ewan-{__version__}.dist-info/licenses/images/wheel/{name}" for name in ("GPL-2", "LGPL-2.1")}
    assert {"ewan/LICENCES", "ewan/CRATES", *licences} <= names
    for name in ("serde", "nix"):
        assert re.search(rf"^{name} [0-9.]+: .*\n", crates, re.MULTILINE), name
    assert "Permission is hereby granted, free of charge" in crates
    assert built(tmp_path).read_bytes() == wheel.read_bytes(), "the same tree gives the same bytes"


def test_a_wheel_for_another_machine_has_no_kernel(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The cross build is that of `make bundle`, and is put in place of a program that a compiler made."""
    scripts: list[tuple[str, ...]] = []

    def built(root: Path, script: str, *words: str) -> Path:
        scripts.append((script, *words))
        (tmp_path / "page").mkdir(exist_ok=True)
        return tmp_path

    def stripped(command: list[str | Path], **options: object) -> None:
        Path(command[2]).write_bytes(b"")

    monkeypatch.setattr(hook, "built", built)
    monkeypatch.setattr(hook, "crates", lambda root, machine: "")
    monkeypatch.setattr(hook, "described", lambda root: "")
    monkeypatch.setattr(subprocess, "run", stripped)
    (tmp_path / "made").mkdir()
    found = dict(hook.contents(ROOT, tmp_path / "made", "aarch64"))
    assert scripts[0] == ("images/node/build.sh", "--for", "aarch64-unknown-linux-gnu")
    assert [name for name in found if name.startswith("programs/")] == ["programs/ewan-node"]
    assert "GNU C library" in found["LICENCES"].read_text() and "linux.xz" not in found["LICENCES"].read_text()


class Installation:
    """The wheel in an environment of its own, as another user where this one may be another."""

    def __init__(self, place: Path, wheel: Path) -> None:
        self.place, self.home = place, place / "home"
        self.environment = place / "an environment"
        self.user = pwd.getpwnam(NOBODY) if os.geteuid() == 0 else None
        self.home.mkdir()
        if self.user is not None:
            os.chown(self.home, self.user.pw_uid, self.user.pw_gid)
        subprocess.run([python(), "-m", "venv", self.environment], check=True)
        self.folder = self._downloaded("plain", wheel)
        self.of_a_project = self._downloaded("project", "aioquic", "pytest")
        """The packages of a project whose tests use the wheel."""

    def pip(self, *words: str | Path) -> None:
        pip: list[str | Path] = [self.environment / "bin/python", "-m", "pip", "-q", "--disable-pip-version-check"]
        done = subprocess.run([*pip, *words], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    def _downloaded(self, name: str, *wanted: str | Path) -> Path:
        """A folder of the wheels that an installation needs, which the cache keeps."""
        lock = "".join((ROOT / f"requirements{kind}.lock").read_text() for kind in ("", "-examples"))
        constraints = self.place / "constraints.txt"
        constraints.write_text(versions(lock))
        folder = cache.kept(os.environ, "wheels", ROOT)
        made = self.place / name
        self.pip("download", "--find-links", folder, "-c", constraints, "-d", made, *wanted)
        for each in made.glob("*.whl"):
            if not each.name.startswith("ewan-") and not (folder / each.name).exists():
                shutil.copy(each, folder / each.name)
        return made

    def run(self, *words: str, program: str = "ewan", cwd: Path | None = None, succeeds: bool = True) -> str:
        clean = {"PATH": "/usr/bin:/bin", "HOME": str(self.home), "LC_ALL": "C.UTF-8"}
        clean |= {"NO_COLOR": "1", "COLUMNS": "300"}
        other: Mapping[str, object] = {}
        if self.user is not None:
            other = {"user": self.user.pw_uid, "group": self.user.pw_gid, "extra_groups": []}
        command = [self.environment / "bin" / program, *words]
        done = subprocess.run(command, cwd=cwd or self.home, env=clean, capture_output=True, text=True, **other)  # type: ignore[call-overload]
        assert not succeeds or done.returncode == 0, done.stderr
        return str(done.stdout + done.stderr)


def python() -> str:
    """A Python that other users may start: the system's, where it is new enough."""
    asked = "import sys, ensurepip; sys.exit(sys.version_info < (3, 11))"
    found = subprocess.run(["/usr/bin/python3", "-c", asked], capture_output=True, check=False)
    return "/usr/bin/python3" if found.returncode == 0 else str(getattr(sys, "_base_executable", sys.executable))


@pytest.fixture(scope="module")
def installation(wheel: Path) -> Iterator[Installation]:
    # Below /tmp: other users may enter no directory of pytest's.
    place = Path(tempfile.mkdtemp(prefix="ewan-wheel-"))
    place.chmod(0o755)
    try:
        yield Installation(place, wheel)
    finally:
        _end_pause_of_podman(place)
        subprocess.run(["chmod", "-R", "u+w", place], check=False)
        shutil.rmtree(place, ignore_errors=True)


def _end_pause_of_podman(place: Path) -> None:
    """Podman, which `ewan doctor` asks, leaves a process for each user who calls it without root."""
    for process in psutil.process_iter(["name"]):
        with contextlib.suppress(psutil.Error):
            if process.info["name"] == "podman pause" and process.environ().get("HOME", "").startswith(f"{place}/"):
                process.kill()


@pytest.mark.virtual
def test_a_person_without_a_compiler_installs_and_uses_it_within_a_minute(installation: Installation) -> None:
    downloads = sum(each.stat().st_size for each in installation.folder.iterdir())
    assert downloads <= MOST_DOWNLOADED_BYTES, f"{downloads / 1e6:.1f} MB"
    begun = time.monotonic()
    installation.pip("install", "--no-index", "--find-links", installation.folder, "ewan")
    installation.pip("install", "--no-index", "--find-links", installation.of_a_project, "aioquic", "pytest")
    subprocess.run(["chmod", "-R", "a-w", installation.environment], check=True)
    assert installation.run("--version") == f"ewan, version {__version__}\n"
    said = installation.run("lab", "dumbbell", "--runtime", "virtual")
    assert "dumbbell verified" in said, said
    said = installation.run("run", "first")
    assert "complete  report: results/" in said, said
    assert "report.html" in installation.run("results", "report")
    # Of a home the programs in a node see nothing; so a project is a folder, as everywhere.
    project = installation.home / "project"
    shutil.copytree(ROOT / "examples/aioquic", project, copy_function=shutil.copyfile)
    said = installation.run("-q", "-p", "no:cacheprovider", program="pytest", cwd=project)
    assert "3 passed" in said, said
    took_s = time.monotonic() - begun
    assert took_s <= LONGEST_S, f"{took_s:.0f} s"


@pytest.mark.virtual
def test_an_installation_says_what_it_has_not(installation: Installation) -> None:
    if not (installation.environment / "bin/ewan").exists():
        installation.pip("install", "--no-index", "--find-links", installation.folder, "ewan")
    said = installation.run("doctor", succeeds=False)
    assert "simulated time" in said and "a lab ran" in said, said
    for name in ("report", "studio", "cluster", "containers", "notebook"):
        assert re.search(rf"^ewan\[{name}\] +.* missing +limited ", said, re.MULTILINE), said
    installation.run("run", "first")
    report = next(installation.home.glob("results/*-first/report.html"))
    assert "Figures need matplotlib, which is not installed" in report.read_text()
    said = installation.run("results", "plot", str(report.parent), "cwnd over time", succeeds=False)
    assert 'figures need matplotlib, which is not installed: pip install "ewan[report]"' in said, said
    said = installation.run("studio", succeeds=False)
    assert said == 'ewan: studio is not set up: pip install "ewan[studio]" does it\n'
    said = installation.run("docs", succeeds=False)
    assert said.count("\n") == 1 and "the source tree of ewan" in said, said


@pytest.mark.virtual
def test_the_action_installs_the_wheel_and_runs_the_tests_of_a_file(
    wheel: Path, installation: Installation, tmp_path: Path
) -> None:
    (tmp_path / action.FILE).write_text(action.TESTS)
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(installation.folder)}
    for step in action.ACTION["runs"]["steps"]:
        ended = action.run(step, action.inputs(package=str(wheel)), tmp_path, **offline)
        assert ended.returncode == 0, ended.stderr
    assert 'tests="1" failures="0"' in (tmp_path / "ewan-junit.xml").read_text()
    ended = action.run(action.ACTION["runs"]["steps"][1], action.inputs(names="none"), tmp_path)
    assert ended.returncode == 2
    assert "has no test none" in ended.stderr
