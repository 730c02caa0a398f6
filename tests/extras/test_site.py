"""The site of the documentation: pages that are made of the code are as the code makes them, and no link is dead."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from ewan import cli
from ewan.extra import installed
from ewan.labs.base.product import ROOT
from ewan.labs.commands import manual
from ewan.labs.commands.manual import pages, pages_of_extras

pytestmark = pytest.mark.slow


def test_pages_that_are_made_of_the_code_are_up_to_date() -> None:
    of_extras, failures = pages_of_extras()
    made = pages(cli.main) | of_extras
    old = [name for name, text in made.items() if (ROOT / "docs" / name).read_text() != text]
    assert not old and not failures, "ewan docs writes them"


def test_pages_of_extras_that_cannot_be_made_are_named_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first one as in the environment of a plain `make setup`, which has no starlette."""
    monkeypatch.setitem(sys.modules, "starlette.requests", None)
    for name in [name for name in sys.modules if name.startswith("ewan.extras.studio.server")]:
        monkeypatch.delitem(sys.modules, name)
    extras = replace(
        installed(),
        pages={"reference/rest.md": installed().pages["reference/rest.md"], "x.md": lambda: 1 / 0},  # type: ignore[dict-item, return-value]
    )
    monkeypatch.setattr(manual, "installed", lambda: extras)
    monkeypatch.setattr(manual, "ROOT", tmp_path)
    monkeypatch.setattr(manual, "pages", lambda root: {"y.md": "y"})
    done = CliRunner().invoke(cli.main, ["docs"])
    assert done.exit_code == 2 and done.stderr.splitlines() == [
        "ewan: docs/reference/rest.md is not written: starlette.requests is not installed: run ./setup.sh studio; "
        "docs/x.md is not written: ZeroDivisionError: division by zero"
    ]
    assert (tmp_path / "docs/y.md").read_text() == "y", "the other pages are written"


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "site/index.html").exists() and (tmp_path / "site/search/search_index.js").exists()
    text = (tmp_path / "site/start/first-lab.html").read_text()
    assert "https://fonts." not in text, "the site works offline"
