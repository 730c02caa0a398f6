"""What two checkouts may write differently, and why. All else must be equal to the byte.

Some of it differs between two runs of one checkout, too: times of the wall clock, and what this machine did meanwhile.
"""

from __future__ import annotations

PATTERNS: list[tuple[str, str, str]] = [
    # pattern, what stands in its place, why
    (r"\d{8}T\d{6}Z", "TIME", "when an experiment began is in its name"),
    (r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|\+00:00)?", "TIME", "when something was done"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d(?::\d\d)?", "TIME", "when something was done"),
]

NAMES = {
    # keys of JSON documents whose values are not compared
    "wall_ns": "how long it took",
}

FILES: dict[str, str] = {
    # names of files that are not compared
}
