"""A layout as the text of a description, with the reason of each value and the line it comes from as comments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ewan.extras.importers.directions import BOX, ImportedDirection, ImportedLayout, ImportedSettings, Setting, names
from ewan.labs.base.reading import one_line

COLUMN = 34
WIDEST_LINE = 118


def text(
    layout: ImportedLayout, head: Sequence[str], notes: Sequence[tuple[int, str]], untold: ImportedSettings
) -> str:
    """The text of a description. `notes` go by the line of the source; `untold` is the settings of a direction that the
    source does not describe."""
    lines = [*(f"# {one_line(each)}" for each in head)]
    for number, note in notes:
        lines += _wrapped(f"line {number}: {note}")
    lines += ["", *(_dumbbell(layout, untold) if layout.alone else _graph(layout, untold))]
    return "\n".join(lines) + "\n"


def _wrapped(note: str) -> Iterator[str]:
    """A comment of one line, or of several of which those behind the first are set in."""
    line = "#"
    for word in note.split(" "):
        if len(line) + 1 + len(word) > WIDEST_LINE and line.strip("# "):
            yield line
            line = "#  "
        line += f" {word}"
    yield line


def _dumbbell(layout: ImportedLayout, untold: ImportedSettings) -> Iterator[str]:
    ((_, _, there, back),) = layout.links
    yield "topology: dumbbell"
    yield "links:"
    yield "  core:"
    yield from _direction("    ", "forward", there, untold)
    yield from _direction("    ", "backward", back, untold)


def _graph(layout: ImportedLayout, untold: ImportedSettings) -> Iterator[str]:
    named = names(layout.hosts)
    others = [named[other] for _, other, _, _ in layout.links]
    yield "topology:"
    yield "  graph:"
    for label, name in named.items():
        yield f"    # {name}: {one_line(label)}"
    yield f"    hosts: [{', '.join(named.values())}]"
    yield f"    routers: [{BOX}]"
    yield "    links:"
    if layout.hub != BOX:
        yield f"      - {{between: [{named[str(layout.hub)]}, {BOX}]}}"
    for _, other, there, back in layout.links:
        yield f"      - between: [{BOX}, {named[other]}]"
        yield f"        name: to-{named[other]}"
        yield "        role: wan"
        yield from _direction("        ", "forward", there, untold)
        yield from _direction("        ", "backward", back, untold)
    if layout.hub == BOX:
        pairs = [f"[{a}, {b}]" for a, b in zip(others, [*others[1:], others[0]], strict=True)]
    else:
        pairs = [f"[{named[str(layout.hub)]}, {other}]" for other in others]
    yield f"    pairs: [{', '.join(pairs)}]"


def _direction(indent: str, key: str, leg: ImportedDirection | None, untold: ImportedSettings) -> Iterator[str]:
    way = untold if leg is None else leg.way
    what = "the script does not state this" if leg is None else leg.what
    yield f"{f'{indent}{key}:':<{COLUMN - 1}} # {one_line(what)}"
    for name, (value, why) in way.settings.items():
        yield _entry(f"{indent}  ", name, value, why)


def _entry(indent: str, key: str, value: Setting, why: str) -> str:
    line = f"{indent}{key}: {_value(value)}"
    return f"{line:<{COLUMN - 1}} # {one_line(why)}" if why else line


def _value(value: Setting) -> str:
    if isinstance(value, str):
        return value
    return "{" + ", ".join(f"{key}: {_value(inner)}" for key, inner in value.items()) + "}"
