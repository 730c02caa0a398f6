"""The last words of programs, which an error quotes. In: what they wrote, or the log of it. Out: one line."""

from __future__ import annotations

from pathlib import Path

MOST_READ = 16 << 10
"""Bytes of the end of a log."""


def last_line(text: str) -> str:
    """The last line of a program's words that says anything."""
    return next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")


def last_words(log: Path) -> str:
    """The last line of a log that says anything; "" where there is none, or no log."""
    try:
        with log.open("rb") as file:
            file.seek(max(file.seek(0, 2) - MOST_READ, 0))
            return last_line(file.read().decode(errors="replace"))
    except OSError:
        return ""
