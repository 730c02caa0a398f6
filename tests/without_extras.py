"""The core's own tests in a copy of the product that has no extras: `python -m tests.without_extras [OPTION…]`.

In: the tracked files of this tree. Out: pytest's output and status. Tests of extras, and tortures of them, stay behind.
Options are pytest's; without one the quick tests are run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.conftest import ROOT

QUICK = (
    "-q -n 2 --dist loadscope -m",
    "not (alone or untimed or containers or live or machines or virtual or torture or slow)",
)


def is_of_the_core(file: str) -> bool:
    """Whether a tracked file is there without extras."""
    if file.startswith(("extras/", "ewan/extras", "tests/extras/", "tests/torture/test_")):
        return False
    return not file.startswith("tests/torture/") or "extras" not in (ROOT / file).read_text()


def copy(place: Path) -> None:
    """Writes the product without extras into an empty directory; programs that are built stay where they are."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for file in filter(is_of_the_core, listed.rstrip("\0").split("\0")):
        target = place / file
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / file).is_symlink():
            target.symlink_to((ROOT / file).readlink())
        else:
            target.write_bytes((ROOT / file).read_bytes())
            target.chmod((ROOT / file).stat().st_mode)
    (place / "target").symlink_to(ROOT / "target")


def main() -> int:
    """Runs the tests; pytest's status."""
    options = sys.argv[1:] or [*QUICK[0].split(), QUICK[1]]
    with tempfile.TemporaryDirectory(prefix="ewan-core-") as place:
        copy(Path(place))
        environment = {**os.environ, "PYTHONPATH": place}
        return subprocess.run([sys.executable, "-m", "pytest", *options], cwd=place, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
