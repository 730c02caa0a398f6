"""`ewan docs` and `ewan completion`: pages that are made of the code, and completion scripts of shells."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ewan.extra import installed
from ewan.labs.base.errors import UserError
from ewan.labs.base.product import INSTALLED, LIBRARY, ROOT
from ewan.labs.commands.errors import Refused, guarded

PYTHON = """`import ewan` makes labs and runs experiments, and reads their results, for test suites
([pytest](../how-to/testing/pytest.md)), notebooks and programs of your own:

```python
import ewan

lab = ewan.lab("dumbbell", rtt="100ms", rate="20Mbit/s")
flow = lab.left1.send("right1", bulk="5MB", congestion="cubic")
result = lab.run()
result.flow(flow).row["completion_ns"]

results = ewan.load("results/20260102T030405Z-streams")
results.metric("utilisation").by("buffer")  # a polars DataFrame: mean, interval and number of seeds
results.figure("goodput by buffer")  # an SVG, which a notebook shows
```

Tables are [polars](https://pola.rs) DataFrames, and the name of a column says its unit."""


@click.command("docs", hidden=True)
@guarded
def docs_command() -> None:
    """Write the pages of docs/ that are made of the code."""
    if INSTALLED:
        raise Refused("the pages stand in the source tree of ewan, which an installed package does not have")
    root = click.get_current_context().find_root().command
    assert isinstance(root, click.Group)
    of_extras, failures = pages_of_extras()
    for name, text in (pages(root) | of_extras).items():
        path = ROOT / "docs" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    if failures:
        raise Refused("; ".join(failures))


def pages_of_extras() -> tuple[dict[str, str], list[str]]:
    """The text of each page that an extra makes, by its path below docs/; a line for each that cannot be made."""
    made: dict[str, str] = {}
    failures = []
    for name, text in installed().pages.items():
        try:
            made[name] = text()
        except UserError as error:
            failures.append(f"docs/{name} is not written: {error}")
        except Exception as error:  # a package of anybody's: whatever it raises, the other pages are made
            failures.append(f"docs/{name} is not written: {type(error).__name__}: {error}")
    return made, failures


def pages(root: click.Group) -> dict[str, str]:
    """The text of each page that is made of the product's code, by its path below docs/; `root`: the command `ewan`."""
    import ewan
    from ewan.analysis import api
    from ewan.analysis.figures.style import Drawing
    from ewan.experiments.api import experiment as api_experiment
    from ewan.experiments.api import lab as api_lab
    from ewan.experiments.api import run as api_run
    from ewan.experiments.api import values as api_values
    from ewan.generator.scenario import gallery
    from ewan.generator.scenario import manual as scenarios
    from ewan.labs import spec
    from ewan.labs.commands import json_reference, process_reference, python_reference, reference
    from ewan.labs.record import manual as metrics
    from ewan.labs.record import schema

    of_python: list[tuple[str, Callable[..., Any]]] = [
        ("ewan.lab", api_lab.lab),
        ("Lab", api_lab.Lab),
        ("LabNode", api_lab.LabNode),
        ("LabLink", api_lab.LabLink),
        ("LinkMoment", api_lab.LinkMoment),
        ("LabProgram", api_run.LabProgram),
        ("RunResult", api_run.RunResult),
        ("FlowResult", api_run.FlowResult),
        ("Lost", api_run.Lost),
        ("ewan.seconds", api_values.seconds),
        ("ewan.scenario", api_experiment.scenario),
        ("ewan.run", api_experiment.run),
        ("ewan.sweep", api_experiment.sweep),
        ("ewan.load", ewan.load),
        ("Results", api.Results),
        ("Values", api.Values),
        ("Drawing", Drawing),
    ]
    page, pictures = gallery.markdown(LIBRARY)
    return {
        "reference/commands.md": reference.markdown(root),
        "reference/environment.md": process_reference.environment(),
        "reference/exit-codes.md": process_reference.exit_statuses(),
        "reference/json.md": json_reference.markdown(root),
        "reference/output.schema.json": json_reference.schema(root),
        "reference/python.md": python_reference.markdown("Python", PYTHON, of_python),
        "reference/description.md": spec.markdown(),
        "reference/scenario.md": scenarios.markdown(),
        "reference/metrics.md": metrics.markdown(),
        "reference/certificate.schema.json": schema.certificate_schema(),
        "reference/characterisation.schema.json": schema.characterisation_schema(),
        "gallery.md": page,
        "../labs/library/README.md": gallery.index(LIBRARY),
        **pictures,
    }


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print the completion script of a shell.

    \b
    eval "$(ewan completion bash)"
    """
    from click.shell_completion import get_completion_class

    root = click.get_current_context().find_root()
    complete = get_completion_class(shell)
    assert complete is not None
    click.echo(complete(root.command, {}, "ewan", "_EWAN_COMPLETE").source())
