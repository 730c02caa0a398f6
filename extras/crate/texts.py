"""The texts of a crate for people: README.md, and reproduce.sh with the commit that made the experiment.

In: an experiment's record, the sources at its commit, the authors and the licence. Out: text."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from ewan.extras.crate import citation, files
from ewan.extras.crate.citation import Author, Licence
from ewan.extras.crate.sources import ProjectSources
from ewan.labs.base.reading import one_line
from ewan.labs.record.experiment import ExperimentDocument

_SCRIPT = Path(__file__).resolve().with_name("reproduce.sh")


def title(document: ExperimentDocument) -> str:
    """The experiment's, in one line."""
    return one_line(document.title) or document.scenario


def progress_of(document: ExperimentDocument) -> str:
    """The number of complete runs of an experiment, in words."""
    complete = sum(run.status == "complete" for run in document.runs)
    return f"{complete} of {len(document.runs)} runs are complete"


def marks(document: ExperimentDocument) -> list[str]:
    """Warnings that stand before the results: sentences, none for a complete experiment in verified labs."""
    found = []
    if document.status != "complete":
        found.append(f"The experiment did not come to its end: {progress_of(document)}.")
    if document.in_failed_labs:
        found.append("Some labs did not pass their verification: the certificates tell which links.")
    elif document.unverified:
        found.append("It was allowed to run in labs that do not pass their verification (--unverified).")
    return found


def description(document: ExperimentDocument) -> str:
    """The experiment in a paragraph, its marks first."""
    clock = "simulated time" if document.clock == "virtual" else "wall time"
    made = (
        f"An experiment of the network emulator ewan in {clock}, started {document.started}: {progress_of(document)}."
    )
    return " ".join([*marks(document), one_line(document.about), made]).strip()


def reproduce(document: ExperimentDocument, sources: ProjectSources) -> str:
    """reproduce.sh."""
    values = {"@COMMIT@": sources.commit or "", "@REPOSITORY@": sources.repository or "", "@VERSION@": sources.version}
    text = _SCRIPT.read_text()
    for placeholder, value in values.items():
        text = text.replace(placeholder, shlex.quote(value))
    return text


def readme(
    document: ExperimentDocument,
    names: Sequence[str],
    sources: ProjectSources,
    authors: Sequence[Author],
    terms: Licence,
) -> str:
    """README.md; `names`: of the files that the experiment left."""
    lines = [f"# {title(document)}", ""]
    lines += [f"**{each}**\n" for each in marks(document)]
    if document.about.strip():
        lines += [document.about.strip(), ""]
    called = (("Name", document.name), ("Tags", ", ".join(document.tags)), ("Note", document.note))
    lines += [f"{what}: {words}\n" for what, words in called if words]
    lines += [
        f"An experiment of the network emulator ewan, scenario `{document.scenario}`. This directory is an",
        "[RO-Crate](https://w3id.org/ro/crate/1.3): `ro-crate-metadata.json` describes each of its files.",
        "",
        "## Repeat it",
        "",
        "    ./reproduce.sh",
        "",
        "checks this directory, runs the experiment once more, and compares. Its last line is `identical`,",
        "`equal within U` or `differs, here: …`. It needs ewan on the PATH, or its path in `EWAN`. New results go to",
        "`results/` where it is started; live experiments need root.",
        "",
        "## Circumstances",
        "",
        *(f"- {name}: {value}" for name, value in _circumstances(document, sources)),
        "",
        "## Files",
        "",
        "| | |",
        "|---|---|",
        *(f"| `{each.pattern}` | {each.meaning} |" for each in _told(names)),
        "",
        "Every column of a table carries its unit.",
        "",
        "## Licence and citation",
        "",
        f"The data are under [{terms.name}]({terms.url}) ({terms.id}). `{citation.FILE}` says how to cite them.",
        f"Authors: {', '.join(each.name for each in authors) or 'not named'}.",
        "",
    ]
    return "\n".join(lines)


def _told(names: Sequence[str]) -> list[files.FileKind]:
    found = {files.kind(name).pattern for name in names} | {*files.OWN} - {files.METADATA, files.README}
    return [each for each in files.KINDS if each.pattern in found]


def _circumstances(document: ExperimentDocument, sources: ProjectSources) -> list[tuple[str, str]]:
    host = document.host
    changed = ", with changes beyond it" if sources.changed else ""
    clock = "virtual (simulated time: a repetition is the same to the byte)" if document.clock == "virtual" else "live"
    rows = [
        ("Command", f"`{document.command}`"),
        ("Clock", clock),
        ("Started, ended", f"{document.started}, {document.ended or 'not ended'}"),
        ("Runs", progress_of(document)),
        ("ewan", f"{sources.version}, commit {sources.commit or 'not recorded'}{changed}"),
        ("ewan-node", f"SHA-256 {document.binary_sha256 or 'not recorded'}"),
    ]
    if document.clock == "virtual":
        rows.append(("Virtual kernel", f"{sources.kernel_version}, SHA-256 {document.kernel_sha256 or 'not recorded'}"))
    if not sources.exact:
        rows.append(("Versions", "of the ewan that archived this; the sources at the commit were not at hand"))
    machine = f"{host.cpu_model}, {host.cpus} CPUs, Linux {host.kernel}, clock source {host.clock_source}"
    return [*rows, ("Machine", machine)]
