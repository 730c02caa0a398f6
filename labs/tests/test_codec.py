"""The codec: what is wrong with a document is told with its place, and nothing but the wanted type comes out of it."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import orjson
import pytest

from ewan.labs.base import codec
from ewan.labs.base.codec import Document, OtherVersionError, Struct, Variant
from ewan.labs.base.product import ROOT


class Square(Variant, tag="square"):
    """A member of a union."""

    side: int


class Circle(Variant, tag="circle"):
    """Another one."""

    radius: float


class Leaf(Struct):
    """A part of a document."""

    name: str
    size: int = 0


class Drawing(Document, tag="ewan-drawing/2"):
    """A document."""

    shapes: tuple[Square | Circle, ...]
    leaves: dict[str, Leaf]
    title: str | None = None


GOOD: dict[str, Any] = {
    "format": "ewan-drawing/2",
    "shapes": [{"kind": "square", "side": 2}],
    "leaves": {"a": {"name": "x"}, "b": {"name": "y", "size": 3}},
}


def test_a_document_is_written_without_what_has_its_default() -> None:
    drawing = codec.decode(Drawing, orjson.dumps(GOOD | {"title": None}), "drawing")
    assert orjson.loads(codec.document(drawing)) == GOOD
    assert codec.data_of(drawing) == GOOD and codec.from_data(Drawing, GOOD, "drawing") == drawing
    assert codec.document(drawing) == codec.document(codec.from_data(Drawing, dict(reversed(GOOD.items())), "drawing"))


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"format": "ewan-drawing/1"}, "format is 'ewan-drawing/1', this version reads 'ewan-drawing/2'"),
        ({"format": "another/1"}, "format is 'another/1', this version reads 'ewan-drawing/2'"),
        ({"format": ""}, "format is '', this version reads 'ewan-drawing/2'"),
        ({"format": 2}, "format is 2, not a string, this version reads 'ewan-drawing/2'"),
        ({"format": None}, "format is None, not a string, this version reads 'ewan-drawing/2'"),
        ({"colour": 1}, "drawing has an unknown key 'colour'"),
        ({"shapes": [{"kind": "star"}]}, "drawing.shapes[0].kind is 'star'"),
        ({"shapes": [{"side": 1}]}, "drawing.shapes[0] has no key 'kind'"),
        ({"shapes": [{"kind": "square", "side": True}]}, "drawing.shapes[0].side is True, not an integer"),
        ({"shapes": [{"kind": "square", "side": 1.5}]}, "drawing.shapes[0].side is 1.5, not an integer"),
        ({"shapes": [{"kind": "square", "side": 1, "radius": 1}]}, "drawing.shapes[0] has an unknown key 'radius'"),
        ({"leaves": {"a": {"name": "x"}, "b": {"name": 3}}}, "drawing.leaves.b.name is 3, not a string"),
        ({"leaves": {"a": {"name": "x"}, "b": {}}}, "drawing.leaves.b has no key 'name'"),
        ({"leaves": {"a": {"name": "x"}, "b": {"name": "y", "more": 1}}}, "drawing.leaves.b has an unknown key 'more'"),
        ({"leaves": {"a": []}}, "drawing.leaves.a is [], not an object"),
        ({"title": 1}, "drawing.title is 1, not a string or null"),
    ],
)
def test_a_refusal_names_the_place_and_the_value(changes: dict[str, Any], says: str) -> None:
    data = GOOD | changes
    for text in (None, orjson.dumps(data)):
        with pytest.raises(ValueError) as refusal:
            codec.from_data(Drawing, data, "drawing") if text is None else codec.decode(Drawing, text, "drawing")
        assert str(refusal.value) == says
        assert isinstance(refusal.value, OtherVersionError) == (changes.get("format") == "ewan-drawing/1")


def test_a_document_without_a_format_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^drawing has no key 'format'$"):
        codec.from_data(Drawing, {key: value for key, value in GOOD.items() if key != "format"}, "drawing")


@pytest.mark.parametrize("text", [b"", b"{", b"[]", b"null", b'{"format": NaN}', b"\xff", b"[" * 100_000, b"9" * 5000])
def test_what_is_no_document_is_refused_in_a_line(text: bytes) -> None:
    with pytest.raises(ValueError) as refusal:
        codec.decode(Drawing, text, "drawing")
    assert str(refusal.value).startswith("drawing ") and str(refusal.value).isprintable()


def test_values_do_not_change() -> None:
    leaf = Leaf("x")
    with pytest.raises(AttributeError):
        leaf.name = "y"  # type: ignore[misc]
    assert codec.replace(leaf, name="y") == Leaf("y") and leaf == Leaf("x")


def test_the_words_of_a_union_are_in_its_order() -> None:
    assert codec.tags(Square | Circle) == ("square", "circle") and codec.tags(Square) == ("square",)
    assert Square(1).kind == "square" and codec.from_data(Drawing, GOOD, "").format == "ewan-drawing/2"


IN_THREADS = """
import sys, threading
from pathlib import Path
from ewan.labs.base import codec
from ewan.labs.plan import Plan

text = Path(sys.argv[1]).read_bytes()
sys.setswitchinterval(1e-6)
begin = threading.Barrier(8)

def read():
    begin.wait()
    codec.decode(Plan, text, "plan")

threads = [threading.Thread(target=read) for _ in range(8)]
for each in threads: each.start()
for each in threads: each.join()
"""


def test_threads_may_read_the_first_document_of_a_type_at_once() -> None:
    """msgspec by itself ends five of six such processes by a fault of memory."""
    golden = ROOT / "tests/golden/stages.plan.json"
    for _ in range(3):
        subprocess.run([sys.executable, "-c", IN_THREADS, str(golden)], check=True)
