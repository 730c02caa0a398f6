"""The paths of an SVG in fewer letters. Pure.

In: SVG as matplotlib writes it, with six decimals. Out: the same picture to a hundredth of a point; long lines as
steps from each point to the next (the commands M and l of SVG 1.1, section 8.3), a third as long.
"""

from __future__ import annotations

import re
from functools import cache

import numpy as np

_COORDINATES, _LONG = re.compile(r' (?:d|x|y)="[^"]*"'), re.compile(r"(\d\.\d{2})\d+")
_LINE = re.compile(r" d=\"M [-\d. MLz\n]{400,}\"")
"""A path of straight pieces, in absolute coordinates."""
_PIECE = re.compile(r"M ([-\d. L\n]+)(z?)")


def short(svg: str) -> str:
    """A hundredth of a point is fine enough, and six decimals of each coordinate would be half of the file."""
    return _COORDINATES.sub(lambda found: _LONG.sub(r"\1", found[0]), _LINE.sub(_relative, svg))


def _relative(found: re.Match[str]) -> str:
    """Steps between rounded points, so that errors do not add up."""
    pieces = []
    for written, closed in _PIECE.findall(found[0]):
        points = np.rint(np.array(written.replace("L", " ").split(), dtype=np.float64) * 100).astype(int)
        begin, steps = points[:2], points[2:] - points[:-2]
        line = f"l{''.join(map(_word, steps.tolist()))}" if len(steps) else ""
        pieces.append(f"M{''.join(map(_word, begin.tolist()))}{line}{closed}")
    return f' d="{"".join(pieces)}"'


@cache
def _word(hundredths: int) -> str:
    """A number behind another one, with what keeps them apart."""
    text = f"{hundredths / 100:.2f}".rstrip("0").rstrip(".")
    sign, text = ("-", text[1:]) if hundredths < 0 else (" ", text)
    return sign + (text[1:] if text.startswith("0.") else text)
