"""Scripts of other emulators as lab descriptions: tc (netem, tbf, htb), Dummynet, NIST Net.

Pure: a script's simple commands with their lines (`script.py`), a reader for each tool, ways between ends
(`directions.py`), the text of a description (`description_text.py`). labs/base/units/tools.py has the tools' own units.
"""

from __future__ import annotations

import click

from ewan.extra import Extra


def _import() -> click.Command:
    from ewan.extras.importers.cli import import_command

    return import_command


EXTRA = Extra(commands={"lab import": _import})
