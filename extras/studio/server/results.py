"""Experiments of the directory where Studio was started: their list, their labels, their files.

In: names. Out: a row of each, as `ewan exp list` has them; files of reports; the output of `ewan results export`. A
report is a page of its own, which may not run scripts here or ask this server for anything; only this server's page may
frame it."""

from __future__ import annotations

import base64
import re
import subprocess
import zipfile
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

from starlette.background import BackgroundTask
from starlette.responses import FileResponse, HTMLResponse, Response

from ewan.analysis import experiment_list, export_kinds
from ewan.analysis.export_kinds import ExportKind
from ewan.experiments.engine.label_changes import relabel
from ewan.extras.studio.server.files import RefusedError
from ewan.labs.base.product import IMPORTED_FROM, RESULTS
from ewan.labs.context import COMMAND
from ewan.labs.record.experiment import DOCUMENT
from ewan.labs.record.journal import JOURNAL

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,200}")
SHOWN = re.compile(r"report\.html|figures/[A-Za-z0-9][A-Za-z0-9._-]{0,200}\.(svg|csv|pdf|png)")
"""Files of an experiment that a report names."""
REPORT = "report.html"
LINKED = {"svg": "image/svg+xml", "csv": "text/csv"}
LINK = re.compile(r'href="(?P<path>figures/[^"/]+\.(?P<kind>svg|csv))"')
MOST = 500
POLICY = "; ".join(
    [
        "default-src 'none'",
        "style-src 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src data:",
        "frame-ancestors 'self'",
        "sandbox allow-downloads",
    ]
)
LONGEST_EXPORT_S = 120
STATE = (DOCUMENT, JOURNAL, "summary.json")
"""Files that a row is made of."""


def exports() -> dict[str, ExportKind]:
    """The files that `ewan results export` can write, by kind."""
    return export_kinds.RESULTS | export_kinds.formats()


class Experiments:
    """The experiments below one directory, in which this process works."""

    def __init__(self, here: Path, environment: Mapping[str, str]) -> None:
        self._place, self._environment = here / RESULTS, environment
        self._rows: dict[str, tuple[object, experiment_list.ExperimentRow]] = {}

    def every(self) -> list[experiment_list.ExperimentRow]:
        """All experiments, the newest first; the row of an unreadable one shows that. One that has not changed is not
        read again."""
        names = [path.name for path in self._place.glob("*") if NAME.fullmatch(path.name) and not path.is_symlink()]
        there = sorted((name for name in names if (self._place / name / DOCUMENT).is_file()), reverse=True)[:MOST]
        known, rows = self._rows, {}  # several threads may ask at once
        for name in there:
            state = tuple(_state(self._place / name / file) for file in STATE)
            row = known.get(name)
            rows[name] = (
                row if row is not None and row[0] == state else (state, experiment_list.describe(self._place / name))
            )
        self._rows = rows
        return [rows[name][1] for name in there]

    def place(self, name: str) -> Path:
        """The directory of an experiment, as an argument of `ewan`; RefusedError for another name."""
        path = self._place / name
        if not NAME.fullmatch(name) or path.resolve() != self._place.resolve() / name:
            raise RefusedError(f"{name}: there is no such experiment")
        if not (path / DOCUMENT).is_file():
            raise RefusedError(f"{name}: there is no such experiment in {RESULTS}/")
        return path

    def words(self, name: str) -> str:
        """The same as a word of a command of this directory."""
        self.place(name)
        return str(RESULTS / name)

    def relabel(
        self, name: str, changes: tuple[str, ...], called: str | None, note: str | None
    ) -> tuple[str, list[str], str]:
        """Name, tags and note afterwards, as `ewan exp tag` changes them; UserError for words that cannot be taken."""
        document = relabel(self.place(name), changes, called, note)
        return document.name, document.tags, document.note

    def file(self, name: str, path: str) -> Response:
        """A file of a report; RefusedError for another file, or an absent one."""
        file, headers = self._shown(name, path), {"content-security-policy": POLICY}
        if path != REPORT:
            return FileResponse(file, headers=headers)
        return HTMLResponse(self._with_files(name, file.read_text("utf-8", "replace")), headers=headers)

    def _with_files(self, name: str, report: str) -> str:
        """A report that carries the files it links to: from a page that may ask for nothing, links lead nowhere."""

        def carried(link: re.Match[str]) -> str:
            try:
                content = self._shown(name, link["path"]).read_bytes()
            except (RefusedError, OSError):
                return link[0]
            return f'href="data:{LINKED[link["kind"]]};base64,{base64.b64encode(content).decode()}"'

        return LINK.sub(carried, report)

    def _shown(self, name: str, path: str) -> Path:
        place = self._place / name
        if not NAME.fullmatch(name) or not SHOWN.fullmatch(path):
            raise RefusedError(f"{name}: there is no such report")
        file = place / path
        if not file.is_file() or file.resolve() != self._place.resolve() / name / path:
            raise RefusedError(f"{name}: has no {path}: ewan results report {name} makes it")
        return file

    def export(self, name: str, kind: str, view: bool) -> Response:
        """The export that `ewan results export --KIND` writes: a file, or several in one of ZIP. RefusedError where
        there is nothing."""
        place = self.place(name)
        if kind not in exports():
            raise RefusedError(f"{kind}: write one of {', '.join(exports())}")
        if view and not (place / "summary.json").exists():
            raise RefusedError(f"{name}: has no report yet, and this studio was started with --view")
        kept = TemporaryDirectory(prefix="ewan-export-")
        try:
            file = self._exported(name, kind, Path(kept.name))
        except BaseException:
            kept.cleanup()
            raise
        return FileResponse(file, filename=file.name, background=BackgroundTask(kept.cleanup))

    def _exported(self, name: str, kind: str, into: Path) -> Path:
        ending = exports()[kind].ending
        target = into / f"{name}{'-reference' * (kind == 'reference')}{ending}" if ending else into / kind
        command = [*COMMAND, "results", "export", str(RESULTS / name), f"--{kind}", str(target)]
        environment = dict(self._environment) | {"PYTHONPATH": str(IMPORTED_FROM), "NO_COLOR": "1"}
        try:
            done = subprocess.run(
                command,
                cwd=self._place.parent,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=LONGEST_EXPORT_S,
            )
        except subprocess.TimeoutExpired:
            line = f"ewan results export {RESULTS / name} --{kind} {kind}"
            raise RefusedError(f"it took more than {LONGEST_EXPORT_S} s: {line} has no limit") from None
        written = sorted(path for path in into.rglob("*") if path.is_file())
        if done.returncode or not written:
            said = done.stderr.strip().splitlines() or ["there is nothing of that kind in this experiment"]
            raise RefusedError(said[-1].removeprefix("ewan: "))
        if len(written) == 1 and ending:
            return written[0]
        whole = into / f"{name}-{kind}.zip"
        with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
            for path in written:
                archive.write(path, path.relative_to(into))
        return whole


def _state(path: Path) -> object:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
