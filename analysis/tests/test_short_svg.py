"""Paths in fewer letters are the same lines."""

from __future__ import annotations

import re

import numpy as np

from ewan.analysis.figures import style


def written(points: list[list[tuple[float, float]]], closed: bool) -> str:
    """A path as matplotlib writes it."""
    pieces = ["M " + "L ".join(f"{x:f} {y:f} \n" for x, y in piece) + "z\n" * closed for piece in points]
    return f'<path d="{"".join(pieces)}" style="fill: none"/>'


def drawn(svg: str) -> list[list[tuple[float, float]]]:
    """The points of a path of M, l and z (SVG 1.1, section 8.3)."""
    found = []
    for piece in re.findall(r"M([^Mz\"]*)", svg):
        begin, _, steps = piece.partition("l")
        numbers = [np.array(re.findall(r"-?[\d.]+", text), float).reshape(-1, 2) for text in (begin, steps)]
        found.append([tuple(point) for point in np.cumsum(np.concatenate(numbers), axis=0)])
    return found


def test_a_long_line_is_the_same_to_a_hundredth_of_a_point_and_shorter() -> None:
    random = np.random.default_rng(1)
    line = list(zip(np.linspace(30, 480, 300), random.normal(-100, 50, 300), strict=True))
    pieces = [line[:200], line[200:201], [(0.5, -0.004), *line[201:], line[299]]]
    for closed in (False, True):
        svg = written(pieces, closed)
        short = style.short(svg)
        assert len(short) < 0.55 * len(svg) and short.endswith('" style="fill: none"/>')
        assert short.count("z") == 3 * closed
        for one, other in zip(pieces, drawn(short), strict=True):
            assert np.abs(np.array(one) - np.array(other)).max() < 0.0051
        assert style.short(short) == short


def test_curves_and_short_paths_lose_digits_alone() -> None:
    curve = '<path d="M 1.234567 -0.001 Q ' + "1.999999 2 3 4 " * 40 + 'z"/>'
    assert style.short(curve) == curve.replace("1.234567", "1.23").replace("0.001", "0.00").replace("1.999999", "1.99")
    assert style.short(written([[(1, 2), (3.14159, 4)]], False)).startswith('<path d="M 1.00 2.00 \nL 3.14 4.00')
