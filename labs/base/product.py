"""The places of the product's own files, whose folders stand side by side in one tree, and of the files that it writes
by default."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
"""The tree in which `labs/`, `ewan/`, `images/` and the others stand."""
BUILT = ROOT / "target"
"""The folder of programs that were built or unpacked."""
RELEASE = BUILT / "release"
"""The folder of programs of this project's own Rust, C and C++."""
NODE_BINARY = RELEASE / "ewan-node"
LIBRARY = ROOT / "labs" / "library"
"""The folder of ready labs, scenarios and targets of papers."""
RESULTS = Path("results")
"""The folder of directories of runs and experiments, where a command is called."""
DEFAULT_ROOT = Path("/run/ewan")
"""The state root: the folder of the directories of labs that are up."""
