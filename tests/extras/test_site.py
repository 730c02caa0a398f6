"""The site of the documentation: pages that are made of the code are as the code makes them, and no link is dead."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ewan import cli
from ewan.labs.base.product import ROOT
from ewan.labs.commands.manual import pages

pytestmark = pytest.mark.slow


def test_pages_that_are_made_of_the_code_are_up_to_date() -> None:
    old = [name for name, text in pages(cli.main).items() if (ROOT / "docs" / name).read_text() != text]
    assert not old, "ewan docs writes them"


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path / "site")]
    built = subprocess.run(
        command, cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True
    )
    assert built.returncode == 0, built.stderr
    assert (tmp_path / "site/index.html").exists() and (tmp_path / "site/search/search_index.js").exists()
    text = (tmp_path / "site/start/first-lab.html").read_text()
    assert "https://fonts." not in text, "the site works offline"
