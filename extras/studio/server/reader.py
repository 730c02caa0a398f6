"""A process that reads experiments' tables and draws: the server stays small, and work that takes too long is ended.

In: a question of `outcomes.py` by its name. Out: its answer. The process is begun at the first question, ends with the
server, or when it has not been asked for a while."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict

import orjson

from ewan.extras.studio.server.files import RefusedError
from ewan.labs.base.product import IMPORTED_FROM

LONGEST_S = 60.0
"""The longest time of an answer, waiting for its turn included."""
IDLE_S = 300.0
PIECE = 1 << 20


class ReaderAnswer(TypedDict, total=False):
    """One of the two: the result of `outcomes.py`, or the reason why there is none."""

    found: Any
    refused: str


class Reader:
    """Asked by several threads; it answers one after the other. `here`: the directory that paths are relative to."""

    def __init__(self, here: Path, environment: Mapping[str, str], longest_s: float = LONGEST_S) -> None:
        self._here, self._environment, self._longest_s = here, environment, longest_s
        self._turn = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, what: str, *words: Any) -> Any:
        """The answer to a question; RefusedError for data that cannot be read or drawn, and for work that takes too
        long."""
        end = time.monotonic() + self._longest_s
        if not self._turn.acquire(timeout=self._longest_s):
            raise RefusedError("others are waiting for figures too: try it once more")
        try:
            answer = self._answer(orjson.dumps([what, *words]) + b"\n", end)
        finally:
            self._turn.release()
        if "refused" in answer:
            raise RefusedError(answer["refused"])
        return answer["found"]

    def _answer(self, question: bytes, end: float) -> ReaderAnswer:
        for again in (True, False):
            process = self._running()
            assert process.stdin is not None
            try:
                process.stdin.write(question)
                process.stdin.flush()
                return _answered(process, end)
            except TimeoutError:
                self.close()
                raise RefusedError(
                    f"it took more than {self._longest_s:g} s and was ended: "
                    "ewan results report, ewan results plot and ewan exp compare take the time that they need"
                ) from None
            except (EOFError, OSError):  # it has just ended, for want of questions or of memory
                self.close()
                if not again:
                    raise RefusedError("it could not be read or drawn: is there memory left?") from None
        raise AssertionError

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self.close()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "ewan.extras.studio.server.reader"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd=self._here,
                env=dict(self._environment) | {"PYTHONPATH": str(IMPORTED_FROM)},
                start_new_session=True,
            )
        return self._process

    def close(self) -> None:
        """Ends the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()
            for pipe in (process.stdin, process.stdout):
                assert pipe is not None
                pipe.close()


def _answered(process: subprocess.Popen[bytes], end: float) -> ReaderAnswer:
    """A line of it; TimeoutError, EOFError."""
    assert process.stdout is not None
    place = process.stdout.fileno()
    waiting = select.poll()
    waiting.register(place, select.POLLIN | select.POLLHUP)
    parts: list[bytes] = []
    while True:
        if not waiting.poll(max(end - time.monotonic(), 0) * 1000):
            raise TimeoutError
        piece = os.read(place, PIECE)
        if not piece:
            raise EOFError
        parts.append(piece)
        if piece.endswith(b"\n"):
            found: ReaderAnswer = orjson.loads(b"".join(parts))
            return found


def main() -> None:
    """The reader's process: a question a line, an answer a line, until the server is gone."""
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints is no answer
    from ewan.analysis.load import LoadError
    from ewan.extras.studio.server.outcomes import ASKED

    waiting = select.poll()
    waiting.register(0, select.POLLIN | select.POLLHUP)
    with os.fdopen(0, "rb", buffering=0, closefd=False) as questions:
        while waiting.poll(IDLE_S * 1000) and (question := questions.readline()):
            what, *words = orjson.loads(question)
            try:
                answer: ReaderAnswer = {"found": ASKED[what](*words)}
            except (LoadError, ValueError) as error:
                answer = {"refused": str(error)}
            except OSError as error:
                answer = {"refused": f"{error.filename}: {error.strerror}"}
            answers.write(orjson.dumps(answer, option=orjson.OPT_NON_STR_KEYS) + b"\n")
            answers.flush()


if __name__ == "__main__":
    main()
