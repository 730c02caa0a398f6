"""Dependencies between the Rust crates point one way: this reads every Cargo.toml of the workspace."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.architecture import ROOT

ORDER = ("system", "model", "datapath", "traffic", "timers", "plan", "lab", "batch", "node")
"""The crates, each of which may depend on those before it; the same list is in emulator/README.md."""
KINDS = ("dependencies", "dev-dependencies", "build-dependencies")


def manifest(path: Path) -> dict[str, Any]:
    return tomllib.loads(path.read_text())


def dependencies(crate: str) -> Iterator[str]:
    """The crates of the workspace that this one depends on, for its tests too."""
    tables = manifest(ROOT / "emulator" / crate / "Cargo.toml")
    for kind in KINDS:
        for name in tables.get(kind, {}):
            if name.startswith("ewan-"):
                yield name.removeprefix("ewan-")


def test_the_order_names_every_crate_of_the_workspace() -> None:
    members = manifest(ROOT / "Cargo.toml")["workspace"]["members"]
    assert members == [f"emulator/{crate}" for crate in ORDER]
    for crate in ORDER:
        assert manifest(ROOT / "emulator" / crate / "Cargo.toml")["package"]["name"] == f"ewan-{crate}"


def test_no_crate_depends_on_one_after_it() -> None:
    wrong = [
        f"emulator/{crate}/Cargo.toml depends on ewan-{other}: it comes later in the order"
        for place, crate in enumerate(ORDER)
        for other in dependencies(crate)
        if other not in ORDER[:place]
    ]
    assert not wrong, "\n".join(wrong)


def test_the_model_needs_nothing_of_linux() -> None:
    assert not list(dependencies("model")), "the virtual kernel links the model, which has no standard library"
