"""A process around a command: writes the exit status beside what the command said, whoever is there to read it.

    python -m studio.server.job DIRECTORY COMMAND…
"""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import orjson

from labs import writing


def main(words: list[str]) -> None:
    """Runs the command; an interrupt is the command's affair."""
    place, command = Path(words[0]), words[1:]
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    status = subprocess.run(command, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)).returncode
    writing.write(place / "ended.json", orjson.dumps({"status": status}))


if __name__ == "__main__":
    main(sys.argv[1:])
