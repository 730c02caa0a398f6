"""Reads ages as people write them on a command line: `2d`, `3h`, `30min`, `1w`. Pure."""

from __future__ import annotations

import re
from datetime import timedelta

_AGE = re.compile(r"(\d{1,5})(min|h|d|w)")
_PERIODS = {"min": timedelta(minutes=1), "h": timedelta(hours=1), "d": timedelta(days=1), "w": timedelta(weeks=1)}


def parse_age(text: str) -> timedelta | None:
    """None for other text."""
    found = _AGE.fullmatch(text)
    return int(found[1]) * _PERIODS[found[2]] if found else None
