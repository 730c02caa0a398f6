"""The end of a program on another machine."""

from __future__ import annotations

from typing import NamedTuple


class CompletedProgram(NamedTuple):
    """A program that has ended: its exit status, or minus the number of the signal that ended it; of standard error the
    last 64 KiB."""

    returncode: int
    stdout: bytes
    stderr: bytes

    @property
    def said(self) -> str:
        """The last line that it wrote to standard error, or else to standard output: for messages."""
        for output in (self.stderr, self.stdout):
            lines = [line.strip() for line in output.decode(errors="replace").split("\n") if line.strip()]
            if lines:
                return lines[-1]
        return "it printed nothing"
