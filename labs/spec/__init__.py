"""The lab description that a person writes, in a file or on the command line, typed and with no default applied.

Every value has the place where it stands. Unknown keys and bare numbers are refused here, in the person's words.
"""

from ewan.labs.base.source import DescriptionError
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
