"""Where built things are kept, for tests that build or download some: see images/cache.sh."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent


def kept(name: str) -> Path:
    """The directory for things of this kind; it is there."""
    script = 'root=$0; . "$root/images/cache.sh"; kept "$1"'
    asked = subprocess.run(["sh", "-c", script, str(ROOT), name], check=True, capture_output=True, text=True)
    return Path(asked.stdout.rstrip("\n"))
