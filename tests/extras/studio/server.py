"""`ewan studio` as a process, which can be killed and started again at the same port."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import psutil

from ewan.labs.base.product import ROOT

CHROMIUM = "/usr/bin/chromium"
FLAGS = [
    # What would ask hosts of others, or a card for graphics.
    *("--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update"),
    *(["--no-sandbox"] if os.geteuid() == 0 else []),
]
WIDTH, HEIGHT = 1280, 720


class Server:
    """In a directory, with labs' state in another one."""

    def __init__(self, place: Path, state: Path) -> None:
        self.place, self._state = place, state
        self._process: subprocess.Popen[str] | None = None
        self.url, self._port = "", 0

    def start(self, *words: str) -> str:
        """The address that it prints."""
        command = [
            sys.executable,
            str(ROOT / "ewan" / "cli.py"),
            "studio",
            "--no-open",
            "--port",
            str(self._port),
            *words,
        ]
        self._process = subprocess.Popen(
            command,
            cwd=self.place,
            env=os.environ | {"EWAN_STATE": str(self._state), "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        self._port = int(self.url.rpartition(":")[2].partition("/")[0])
        return self.url

    def memory_bytes(self) -> int:
        """Of the process, in RAM."""
        assert self._process is not None
        return int(psutil.Process(self._process.pid).memory_info().rss)

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None
