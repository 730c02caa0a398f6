"""The kinds and keys of a link's stages are the same in Python and in Rust, and all are in the manual.

`python -m ewan.labs.tests.test_stages` writes `tests/golden/stages.json`: the kinds and keys of all stages as Python
has them, examples of each key and of each discipline, and the bounds that rows name.
emulator/plan/src/stages_tests.rs compares it with Rust's; emulator/model/tests/properties.rs runs the examples.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import orjson

from ewan.labs.base.codec import Struct, tags
from ewan.labs.base.model import Model
from ewan.labs.link import Change, Direction, PacedClass
from ewan.labs.link.keys import ROWS
from ewan.labs.link.loss import LossKeys
from ewan.labs.link.queue import QueueKeys
from ewan.labs.link.trace import TraceKeys
from ewan.labs.plan import Interface
from ewan.labs.spec import manual
from ewan.labs.tests.stage_examples import changes, disciplines

GOLDEN = Path(__file__).resolve().parents[2] / "tests/golden/stages.json"


def test_every_group_of_keys_of_a_stage_is_in_the_manual() -> None:
    shown = [model for _, model, _ in manual._SECTIONS]
    assert TraceKeys in shown
    for stage in (LossKeys, QueueKeys):
        for field in stage.model_fields.values():
            for part in get_args(field.annotation):
                if isinstance(part, type) and issubclass(part, Model) and part.model_fields:
                    assert part in shown, f"write {part.__name__} into labs/spec/manual.py"


def test_rust_has_the_same_kinds_and_keys_of_stages() -> None:
    golden = orjson.loads(GOLDEN.read_bytes())
    ours = listed()
    for stage in golden.keys() | ours.keys():
        assert golden.get(stage) == ours.get(stage), f"{stage}: Rust's (tests/golden/stages.json) left, Python's right"


def listed() -> dict[str, Any]:
    """By the name of a stage its keys; or its kinds, each with its keys. And what examples become in the plan,
    and the bounds of fields."""
    found: dict[str, Any] = {"change": _keys(Change), "direction": _keys(Direction)}
    found["examples"] = {"changes": changes(), "disciplines": disciplines()}
    found["bounds"] = {
        row.plan[0]: [row.bounds.least, row.bounds.most] for row in ROWS.values() if row.bounds is not None
    }
    of_sources = [("egress", get_type_hints(Interface)["egress"]), ("pacer", get_type_hints(PacedClass)["pacer"])]
    for name, hint in [*_nested(Direction), *of_sources]:
        found[name] = (
            _keys(hint) if _is_struct(hint) else {kind: _keys(part) for part in get_args(hint) for kind in tags(part)}
        )
    return found


def _nested(kind: Any) -> Iterator[tuple[str, Any]]:
    """The fields of a type, and of those in it, that are types of their own or unions of them."""
    for name, hint in get_type_hints(kind).items():
        if _is_struct(hint):
            yield name, hint
            yield from _nested(hint)
        elif any(_is_struct(part) for part in get_args(hint)):
            yield name, hint


def _keys(kind: Any) -> list[str]:
    return sorted(kind.__struct_encode_fields__)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


if __name__ == "__main__":
    GOLDEN.write_bytes(orjson.dumps(listed(), option=orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS) + b"\n")
