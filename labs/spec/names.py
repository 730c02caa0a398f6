"""Finds the file that a name stands for: one rule for lab descriptions and scenarios.

In: the word that a person wrote, the ending of such files, the directory that names are relative to. Out: the file, or
None with similar names. A word with "/" or the suffix of YAML is a path. Any other word is a name: NAME.lab.yaml
(NAME.scenario.yaml) in the directory, then in labs/library.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path as File

from ewan.labs.base.product import LIBRARY

LAB, SCENARIO = ".lab.yaml", ".scenario.yaml"
MOST_NEAR, MOST_NAMES = 3, 24


def is_path(word: str) -> bool:
    """Return whether `word` is the path of a file, and not a name."""
    return "/" in word or word.endswith((".yaml", ".yml"))


def find(word: str, ending: str, folder: File | None = None) -> File | None:
    """The file that `word` means; None for a name that neither `folder` (default: the current directory) nor the
    library has. A path is given back as it is, with the ending where only that file exists."""
    here = File() if folder is None else folder
    if is_path(word):
        file, ended = here / word, here / f"{word}{ending}"
        return ended if ended.is_file() and not file.exists() else file
    for place in (here, LIBRARY):
        file = place / f"{word}{ending}"
        # A name such as "" or ".." stands for no file, and one that is too long for the file system for none either.
        try:
            if file.is_file():
                return file
        except OSError:
            return None
    return None


def known(ending: str, folder: File | None = None) -> list[str]:
    """All names that `find` knows, in alphabetical order."""
    here = File() if folder is None else folder
    return sorted({file.name.removesuffix(ending) for place in (here, LIBRARY) for file in place.glob(f"*{ending}")})


def near(word: str, names: Iterable[str], ending: str) -> str:
    """The suggestion to write instead of an unknown name: similar ones; else all, or the path of a file."""
    all_names = list(names)
    begun = [name for name in all_names if word and name.startswith(word)]
    close = list(dict.fromkeys([*difflib.get_close_matches(word, all_names, MOST_NEAR), *begun]))[:MOST_NEAR]
    if close:
        *first, last = [f'"{name}"' for name in close]
        return f"write {', '.join(first)} or {last}" if first else f"write {last}"
    shown = [*all_names[:MOST_NAMES], *(["…"] if len(all_names) > MOST_NAMES else [])]
    return f"write one of {', '.join(shown)}, or the path of a file (*{ending})"
