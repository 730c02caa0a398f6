"""Submissions and grades for tests, as small as they can be."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Mapping
from typing import Any

import orjson

from ewan.extras.course import grade, submission
from ewan.extras.course.verdicts import State

DIGEST = "0" * 64


def document(**changed: Any) -> dict[str, Any]:
    return {
        "format": "ewan-submission/1",
        "lab": "bufferbloat",
        "student": "4711",
        "language": "en",
        "content": DIGEST,
        "answers": {"pipe": "42kB", "law": "square root", "tuned": {"send_buffer": "1MB"}},
        "experiments": [],
        "checks": [],
        **changed,
    }


def run(inputs: str = "a", tables: str = "b", key: str = "c", name: str = "buffer=1BDP") -> submission.SubmittedRun:
    return submission.SubmittedRun(name=name, key=key * 64, inputs=inputs * 64, tables=tables * 64)


def experiment(*runs: submission.SubmittedRun, **changed: Any) -> submission.SubmittedExperiment:
    told: dict[str, Any] = {
        "scenario": "bloat",
        "started": "2026-11-24T17:00:00+00:00",
        "command": "ewan run bloat.scenario.yaml --runtime virtual",
        "text": "d" * 64,
        "changed": False,
        "kernel": "e" * 64,
        "binary": "f" * 64,
    }
    return submission.SubmittedExperiment(**{**told, **changed}, runs=runs)


def zipped(members: Mapping[str, bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def handed_in(**changed: Any) -> bytes:
    return zipped({submission.DOCUMENT: orjson.dumps(document(**changed))})


def question(name: str = "pipe", verdict: State = "right", **changed: Any) -> grade.QuestionGrade:
    told: dict[str, Any] = {"kind": "size", "points": 1.0 if verdict == "right" else 0.0, "most": 1.0}
    return grade.QuestionGrade(**{**told, **changed}, name=name, verdict=verdict)


def graded(student: str = "4711", *questions: grade.QuestionGrade, **changed: Any) -> grade.Grade:
    lab = changed.pop("lab", "bufferbloat")
    told: dict[str, Any] = {"file": f"{lab}-{student}.zip", "sha256": f"{student:0>64}"}
    return grade.Grade(**{**told, **changed}, lab=lab, student=student, questions=questions)
