"""The reference of classes and functions as a page, made of their docstrings.

In: objects. Out: Markdown: each with its signature and its docstring, public members below their class.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any


def markdown(title: str, about: str, objects: Iterable[tuple[str, Callable[..., Any]]]) -> str:
    """The page: `about` below its title, then a section for each object by the name that users write."""
    parts = [f"# {title}\n\n{about}\n"]
    for name, each in objects:
        parts.append(f"\n## `{name}`\n\n{_entry(name, each)}")
        if inspect.isclass(each):
            parts += [f"\n### `{name}.{member}`\n\n{_entry(member, value)}" for member, value in _members(each)]
    return "".join(parts)


def _members(owner: type[Any]) -> Iterator[tuple[str, Any]]:
    for name, value in vars(owner).items():
        if not name.startswith("_") and (callable(value) or isinstance(value, property)) and inspect.getdoc(value):
            yield name, value


def _entry(name: str, value: Any) -> str:
    text = inspect.getdoc(value) or ""
    if isinstance(value, property):
        return f"A property.\n\n{text}\n"
    signature = re.sub(r"'([^']*)'", r"\1", str(inspect.signature(value)))
    signature = signature.replace("(self, ", "(").replace("(self)", "()")
    return f"```python\n{name}{signature}\n```\n\n{text}\n"
