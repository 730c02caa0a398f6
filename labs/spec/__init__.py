"""What a person writes: the lab description, from a file or the command line, typed and with no default applied."""

from ewan.labs.spec.description import (
    Spec,
    from_data,
    from_template,
    json_schema,
    load,
    markdown,
    override,
    parse,
    text_of,
    translate,
)
from ewan.labs.spec.source import DescriptionError

__all__ = [
    "DescriptionError",
    "Spec",
    "from_data",
    "from_template",
    "json_schema",
    "load",
    "markdown",
    "override",
    "parse",
    "text_of",
    "translate",
]
