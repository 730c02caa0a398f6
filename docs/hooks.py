"""Pages and files of the site that stand elsewhere in the tree: a link from a page of docs/ to one of them stays in the
site.

In: what MkDocs knows of its files, the text of each page. Out: the files with those of `OUTSIDE` and all that pages
link to, and text whose links lead to where these stand in the site.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parent.parent
OUTSIDE = {
    "CHANGELOG.md": "releases.md",
    "SECURITY.md": "explanation/security.md",
    "emulator/README.md": "contribute/emulator.md",
    "emulator/kernel/psp/README.md": "contribute/psp.md",
    "emulator/kernel/tcp/README.md": "contribute/tcp.md",
    "extras/studio/README.md": "contribute/studio.md",
    "images/README.md": "contribute/images.md",
    "images/kernel/README.md": "contribute/kernel.md",
    "README.md": "index.md",
}
"""Pages: where they are in the tree, and where in the site."""
SOURCE = "source"
"""The folder of the site for other files of the tree that pages link to."""
_LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")


def on_files(files: Files, config: Any) -> Files:
    """Adds the pages of `OUTSIDE`, and the files of the tree that pages link to."""
    for source, target in OUTSIDE.items():
        if target != "index.md":
            files.append(File.generated(config, target, abs_src_path=str(ROOT / source)))
    for file in [*files.documentation_pages()]:
        for _, target, _ in _LINK.findall(file.content_string):
            path = _in_tree(file, target)
            if path is None or not (ROOT / path).is_file() or _place(path) != f"{SOURCE}/{path}":
                continue
            if files.get_file_from_path(_place(path)) is None:
                files.append(File.generated(config, _place(path), abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: Any, files: Files) -> str:
    """Lets each link to a file of the tree lead to where this stands in the site; a folder is named, not linked."""

    def moved(match: re.Match[str]) -> str:
        path = _in_tree(page.file, match[2])
        if path is None:
            return match[0]
        place = _place(path)
        if files.get_file_from_path(place) is None:
            return match[0]
        return match[1] + os.path.relpath(place, Path(page.file.src_uri).parent) + match[3]

    return _LINK.sub(moved, markdown)


def _in_tree(file: File, target: str) -> str | None:
    """The path in the tree to which a link of a page leads; None where it leads out of it."""
    path = os.path.normpath(Path(str(file.abs_src_path)).parent / target)
    relative = os.path.relpath(path, ROOT)
    return None if relative.startswith("..") else relative


def _place(path: str) -> str:
    """The path of a file of the tree in the site."""
    if path.startswith("docs/"):
        return path.removeprefix("docs/")
    return OUTSIDE.get(path, f"{SOURCE}/{path}")
