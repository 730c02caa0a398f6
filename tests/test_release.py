"""The version stands in one file, and its release is dated."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from importlib import metadata

import pytest
import yaml

from ewan import __version__
from ewan.labs import images
from ewan.labs.base.product import ROOT
from ewan.labs.context import COMMAND

CARGO = ("Cargo.toml", "emulator/kernel/ewan/Cargo.toml", "generator/quic/Cargo.toml", "generator/quic/s2n/Cargo.toml")


def test_the_newest_release_of_the_changelog_is_this_version_and_dated() -> None:
    headings = re.findall(r"^## (.+)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    releases = [heading for heading in headings if heading != "Unreleased"]
    assert all(re.fullmatch(r"\d+\.\d+\.\d+ \(\d{4}-\d\d-\d\d\)", heading) for heading in releases), releases
    assert releases[0].split()[0] == __version__


def test_what_others_cite_is_the_newest_release() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert f"## {cited['version']} ({cited['date-released']})" in (ROOT / "CHANGELOG.md").read_text()
    assert cited["version"] == __version__


def test_all_parts_have_this_version() -> None:
    said = subprocess.run([*COMMAND, "--version"], check=True, capture_output=True, text=True).stdout
    assert said == f"ewan, version {__version__}\n"
    assert metadata.version("ewan") == __version__
    assert __version__ == images.TAG


def test_no_other_file_has_a_version_of_the_product() -> None:
    for path in CARGO:
        cargo = tomllib.loads((ROOT / path).read_text())
        package = cargo.get("package") or cargo["workspace"]["package"]
        assert package["version"] == "0.0.0", path
    assert "version" not in json.loads((ROOT / "extras/studio/page/package.json").read_text())
    assert "ewan.version=$VERSION" in (ROOT / "images/Dockerfile").read_text()


@pytest.mark.slow
def test_the_node_binary_has_this_version() -> None:
    from ewan.labs.context import Context

    binary = Context.of({}).binary
    said = subprocess.run([str(binary), "--version"], check=True, capture_output=True, text=True).stdout
    assert said == f"ewan-node {__version__}\n"
