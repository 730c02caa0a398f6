"""The interface that the server describes, and the page's types, which are generated of it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from ewan.extras.studio.server import app
from ewan.labs.base.product import ROOT

PAGE = ROOT / "extras/studio/page"


def test_types_of_the_interface_have_names_of_their_own() -> None:
    """Two classes of one name would get long ones, and a class that is asked and answered would get two."""
    schemas = app.interface()["components"]["schemas"]
    assert len(schemas) > 50 and all(name.isalnum() for name in schemas), sorted(schemas)


def test_the_description_of_the_interface_refers_to_what_is_there() -> None:
    described = app.interface()

    def references(value: object) -> set[str]:
        parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
        own = {str(value["$ref"])} if isinstance(value, dict) and "$ref" in value else set()
        return own.union(*map(references, parts))

    there = {f"#/components/{kind}/{name}" for kind, known in described["components"].items() for name in known}
    assert references(described) <= there


@pytest.mark.untimed  # it needs Node.js and the generator, which `make check` does without
def test_the_types_of_the_page_are_those_of_the_interface(tmp_path: Path) -> None:
    """`extras/studio/page/types.sh` writes them anew."""
    made = tmp_path / "server.ts"
    subprocess.run([PAGE / "types.sh", made], check=True, capture_output=True)
    assert made.read_text() == (PAGE / "src/server.ts").read_text(), "run extras/studio/page/types.sh"
