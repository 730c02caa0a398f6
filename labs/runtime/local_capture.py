"""A capture on this machine: `ewan-node capture` while it runs.

In: its command line, which has `--tell`. Out: its stream, if that was asked for, and what it counted.
"""

from __future__ import annotations

import signal
import subprocess
import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, TYPE_CHECKING

import orjson

from ewan.labs.runtime.base import LabError
from ewan.labs.runtime.words import last_line

if TYPE_CHECKING:
    from ewan.labs.capture.words import CaptureCounts

ENDS_S = 5.0
"""A capture that has not ended so long after it was asked to waits for a reader that does not read."""


class LocalCapture:
    """See `ewan.labs.runtime.base.OpenCapture`."""

    def __init__(self, command: Sequence[str], piped: bool) -> None:
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if piped else None,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._said = b""
        # It prints only at its end; a thread reads that, so that it never waits for us.
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stderr is not None
        self._said = self._process.stderr.read()

    @property
    def stream(self) -> IO[bytes]:
        """The output of the capture, if it was `piped`."""
        assert self._process.stdout is not None
        return self._process.stdout

    def end(self) -> None:
        """Asks it to end; by force where it waits for a reader that does not read."""
        with suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGINT)
        timer = threading.Timer(ENDS_S, self._process.kill)
        timer.daemon = True
        timer.start()

    def wait(self) -> CaptureCounts:
        """Until it ends."""
        status = self._process.wait()
        self._reader.join()
        last = last_line(self._said.decode(errors="replace"))
        if status == -signal.SIGKILL:
            raise LabError("the capture had to be killed: whoever reads it did not take what it had")
        if status != 0:
            raise LabError(last or f"the capture ended with status {status}")
        counts: CaptureCounts = orjson.loads(last)
        return counts

    def close(self) -> None:
        """Ends it by force, if it still runs."""
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
