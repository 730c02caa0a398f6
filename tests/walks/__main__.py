"""Makes walks in a copy of the checkout and prints a table: walk, files, seconds, result.

usage: python -m tests.walks [WALK …]

In: the checkout as it is, with its environment and its builds, which the copy shares. Out: exit status 1 where a patch
does not apply, a test of it fails or its check does not find what it must. It takes three to six minutes and, for the
runtime, root: it is run weekly and before a release.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Sequence
from pathlib import Path

from tests.walks import ROOT, WALKS, Check, Walk

LONGEST_S = 600
EWAN = (sys.executable, "-m", "ewan")
CRATES = ("-p", "ewan-model", "-p", "ewan-plan", "--lib", "--test", "properties")
RUST = (
    ("cargo", "fmt", "--check"),
    ("cargo", "test", "--profile", "checked", "--locked", "--quiet", *CRATES),
)
"""What tests the model of the link where it is new."""
STATE = "state"
"""Where labs of the live clock keep their state."""


class WalkError(Exception):
    """What of a walk did not go as it should, with the last lines that were said."""


class Copy:
    """A copy of the checkout in `place`, in which patches are applied and taken back."""

    def __init__(self, place: Path) -> None:
        self.root = place / "checkout"
        git(place, "clone", "--quiet", "--shared", str(ROOT), str(self.root))
        changes = git(ROOT, "diff", "--binary", "HEAD")
        if changes:
            git(self.root, "apply", "-", given=changes)
            git(self.root, "commit", "--quiet", "--all", "--message", "The checkout as it is")
        for shared in ("target", ".venv"):
            (self.root / shared).symlink_to(ROOT / shared)

    def make(self, walk: Walk, place: Path) -> None:
        """Applies a patch, runs its tests and its checks in `place`, and takes it back."""
        git(self.root, "apply", str(walk.patch))
        try:
            self._register()
            ruff = [sys.executable, "-m", "ruff", "check", "--quiet", "."]
            self._run(ruff, self.root)
            if walk.in_rust:
                for command in RUST:
                    self._run(command, self.root)
            self._run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *walk.tests], self.root)
            for name, text in walk.inputs.items():
                (place / name).write_text(text)
            for check in walk.checks:
                self._check(check, place)
        finally:
            if (place / STATE).exists():  # a check may have failed before the one that removes its lab
                self._run([*EWAN, "down", "--all"], place)
            git(self.root, "checkout", "--quiet", ".")
            git(self.root, "clean", "--quiet", "--force", "-d")

    def _register(self) -> None:
        """Entry points of the copy's own extras, as an installation writes them."""
        project = tomllib.loads((self.root / "pyproject.toml").read_text())["project"]
        folder = self.root / "ewan-0.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: ewan\nVersion: 0\n")
        lines = [
            f"[{group}]\n" + "".join(f"{name} = {place}\n" for name, place in named.items())
            for group, named in project["entry-points"].items()
        ]
        (folder / "entry_points.txt").write_text("\n".join(lines))

    def _check(self, check: Check, place: Path) -> None:
        if check.root and os.geteuid() != 0:
            raise WalkError("needs root")
        said = self._run([sys.executable, "-m", check.module, *check.words], place)
        if check.found_in:
            files = sorted(place.glob(check.found_in))
            said = files[-1].read_text() if files else f"there is no {check.found_in}"
        if not re.search(check.said, said, re.S):
            raise WalkError(f"{check.module} {' '.join(check.words)}: {check.said!r} is not in\n{said[-1000:]}")

    def _run(self, command: Sequence[str], place: Path) -> str:
        environment = {
            **os.environ,
            "PYTHONPATH": str(self.root),
            "PYTHONDONTWRITEBYTECODE": "1",
            "EWAN_STATE": str(place / STATE),
        }
        done = subprocess.run(command, cwd=place, env=environment, capture_output=True, text=True, timeout=LONGEST_S)
        if done.returncode != 0:
            raise WalkError(f"{' '.join(command)}: status {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}")
        return done.stdout + done.stderr


def git(place: Path, *words: str, given: str = "") -> str:
    """Runs git; its output, or WalkError."""
    identity = ("-c", "user.name=walks", "-c", "user.email=walks@localhost")
    done = subprocess.run(["git", *identity, *words], cwd=place, input=given, capture_output=True, text=True)
    if done.returncode != 0:
        raise WalkError(f"git {words[0]}: {done.stderr.strip()}")
    return done.stdout


def main(names: Sequence[str]) -> int:
    """The status with which the program ends."""
    known = {walk.name: walk for walk in WALKS}
    for name in names:
        if name not in known:
            print(f"tests.walks: {name}: write one of {', '.join(known)}", file=sys.stderr)
            return 2
    failed = []
    print(f"{'walk':26}{'files':>6}{'seconds':>9}  result", flush=True)
    with tempfile.TemporaryDirectory(prefix="ewan-walks-") as place:
        copy = Copy(Path(place))
        for walk in (known[name] for name in names or known):
            begun, work = time.monotonic(), Path(place) / walk.name
            work.mkdir()
            try:
                copy.make(walk, work)
                result = "works"
            except WalkError as error:
                failed.append(f"\n{walk.name}: {error}")
                result = "fails"
            print(f"{walk.name:26}{len(walk.files):6}{time.monotonic() - begun:9.1f}  {result}", flush=True)
    print("".join(failed), end="" if not failed else "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
