"""The places of the product's own files, in its source tree and in the package that pip installs, and of the files that
it writes by default.

In the source tree the folders `labs/`, `images/` and the others stand beside the package `ewan/`. In the wheel
(images/wheel) they stand in it, at the same paths, and the programs in `ewan/programs/`. `from_source` has
the words for what a command needs and the wheel does not have.
"""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The folder in which `labs/`, `images/` and the others stand: the source tree, or the installed package."""
INSTALLED = (ROOT / "__init__.py").exists()
"""True in the installed package, which has no source tree around it."""
PACKAGE = ROOT if INSTALLED else ROOT / "ewan"
IMPORTED_FROM = PACKAGE.parent
"""The folder that Python has in its search path for `import ewan`."""
CLI = PACKAGE / "cli.py"
BUILT = ROOT / "target"
"""The folder of programs that were built or unpacked in the source tree."""
RELEASE = ROOT / "programs" if INSTALLED else BUILT / "release"
"""The folder of programs of this project's own Rust, C and C++."""
NODE_BINARY = RELEASE / "ewan-node"
KERNEL = RELEASE / "linux.xz" if INSTALLED else None
"""The compressed virtual kernel of the installed package; None in the source tree, which builds it."""
COMMIT = ROOT / "COMMIT"
"""The file with the commit of which an installed package was made."""
STUDIO_PAGE = ROOT / "studio" if INSTALLED else BUILT / "studio/page"
"""The folder of the page that `ewan studio` serves."""
LIBRARY = ROOT / "labs" / "library"
"""The folder of ready labs, scenarios and targets of papers."""
RESULTS = Path("results")
"""The folder of directories of runs and experiments, where a command is called."""
DEFAULT_ROOT = Path("/run/ewan")
"""The state root: the folder of the directories of labs that are up."""


def from_source(command: str) -> str:
    """The words for a make command that the source tree has, and an installed package has not."""
    return f"{command} in the source tree of ewan, which an installed package does not have" if INSTALLED else command


def command(of_make: str, of_ewan: str) -> str:
    """The command that messages advise: of make in the source tree, of ewan where it is installed."""
    return of_ewan if INSTALLED else of_make


def shown(path: Path) -> str:
    """A path below `ROOT` as messages name it: relative to the source tree, absolute in an installed package."""
    return str(path if INSTALLED else path.relative_to(ROOT))


def extra(name: str, command: str) -> str:
    """The words that install the packages of an extra: `command` in the source tree, pip elsewhere."""
    return f'pip install "ewan[{name}]"' if INSTALLED else command
