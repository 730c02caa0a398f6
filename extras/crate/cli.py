"""The command `archive`: an experiment as an RO-Crate that others can check and repeat.

In: the command line. Out: a .zip or a directory; on standard output its path. Exit status 0 when it is written, 2 for
what the user can put right, with nothing left behind.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click

from ewan.experiments.engine import archive
from ewan.extras.crate import citation, sources, texts
from ewan.labs.base import optional
from ewan.labs.base.codec import Struct
from ewan.labs.base.units.shown import about
from ewan.labs.commands.errors import Refused, guarded
from ewan.labs.commands.options import json_option, pass_context
from ewan.labs.context import Context
from ewan.labs.record.experiment import DOCUMENT

ENDING = ".crate.zip"


class CrateOutput(Struct):
    """An RO-Crate that was written. `marks`: warnings that it carries, for example of an incomplete experiment."""

    crate: str
    files: int
    size_bytes: int
    licence: str
    authors: tuple[str, ...]
    marks: tuple[str, ...]


@click.command("archive")
@click.argument("run", metavar="RUN", type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="the .zip file or the new directory to write",
)
@click.option(
    "--licence",
    metavar="SPDX-ID",
    default=citation.DEFAULT_LICENCE,
    show_default=True,
    help="licence of the data",
)
@click.option(
    "--author", "authors", metavar='"FAMILY, GIVEN <ORCID>"', multiple=True, help="an author; may be given again"
)
@click.option("--repository", metavar="URL", help="where others get ewan (default: the origin of this clone)")
@json_option(lambda: CrateOutput)
@guarded
@pass_context
def archive_command(
    context: Context,
    run: Path,
    output: Path | None,
    licence: str,
    authors: tuple[str, ...],
    repository: str | None,
    as_json: bool,
) -> None:
    """Write an experiment as an RO-Crate 1.3 that others can check, repeat and cite.

    RUN is a directory of results/, a run in it, or an archive (.tar.zst) of one. The crate holds all of the experiment,
    its description, a bill of materials (SPDX), CITATION.cff, checksums, and reproduce.sh, which repeats the experiment
    and says "identical", "equal within U" or "differs, here: …".

    \b
    ewan exp archive results/20261121T120000Z-parallel-streams --author "Lovelace, Ada <0000-0002-1825-0097>"
    """
    with optional.wanted("archives need", "report"):
        from ewan.extras.crate import writer  # rocrate is slow to import, and nothing else needs it

    people = [citation.author(words) for words in authors]
    terms = writer.Terms(people, citation.licence(licence), _shareable(repository))
    source = experiment_of(run)
    place = output or beside(source)
    _free(place, source)
    with archive.opened(source) as experiment, experiment.locked():
        archive.intact(experiment, source)
        if not any(entry.status == "complete" for entry in experiment.runs):
            go_on = f": ewan exp resume {source} goes on with it" if source.is_dir() else ""
            raise Refused(f"{source}: no run of it is complete, there is nothing to check{go_on}")
        with context.reporter.progress(f"{place.name}: copying") as shown:
            number = writer.write(
                experiment,
                place,
                terms,
                datetime.now(UTC),
                lambda done, of: shown.update(f"{place.name}: {done} of {of} files"),
            )
        warnings = texts.marks(experiment.document)
    size = place.stat().st_size if place.is_file() else sum(each.stat().st_size for each in place.rglob("*"))
    if as_json:
        context.reporter.emit(
            CrateOutput(
                crate=str(place),
                files=number,
                size_bytes=size,
                licence=terms.licence.id,
                authors=tuple(each.name for each in people),
                marks=tuple(warnings),
            )
        )
    else:
        held = f"{number} files, {about(size, 'size', 3)}, data under {terms.licence.id}"
        context.reporter.console.print(f"{place}: {held}", soft_wrap=True, markup=False)
    for line in warnings:
        context.reporter.warn(f"{line} The crate says so.")
    if not people:
        context.reporter.tell(f'{citation.FILE} says "{citation.UNNAMED}": name authors with --author {citation.LIKE}')


def experiment_of(run: Path) -> Path:
    """The experiment that is meant: `run` itself, or the experiment that a run's directory is of."""
    if not run.exists():
        raise Refused(f"{run}: there is no such directory or archive: ewan exp list lists the experiments")
    above = run.resolve().parent.parent
    if run.is_dir() and not (run / DOCUMENT).exists() and (above / DOCUMENT).exists():
        return above
    return run


def beside(source: Path) -> Path:
    """The usual path of the crate of an experiment: beside its directory."""
    directory = source.resolve()
    if source.is_file():
        inside = (directory.parent / DOCUMENT).exists()
        directory = directory.parent if inside else directory.with_name(directory.name.partition(".")[0])
    return directory.with_name(directory.name + ENDING)


def _free(place: Path, source: Path) -> None:
    """Refused where the crate would take the place of something, or be a part of itself."""
    if place.exists() or place.is_symlink():
        raise Refused(f"{place}: is there already: remove it, or name another place with --output")
    if not place.absolute().parent.is_dir():
        raise Refused(f"--output {place}: there is no directory {place.parent}: make it first")
    if source.is_dir() and place.resolve().is_relative_to(source.resolve()):
        raise Refused(f"--output {place}: is in the experiment itself: write it beside {source}")


def _shareable(repository: str | None) -> str | None:
    if repository is None:
        return None
    url = sources.shareable(repository)
    if url is None:
        raise Refused(f'--repository "{repository}": others cannot clone that: write a URL, like https://host/ewan.git')
    return url
