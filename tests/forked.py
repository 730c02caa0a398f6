"""Calls in processes of their own, forked from one that has everything imported: a command in hundredths of a second.

In: what to call, where, with which standard streams and limits. Out: its exit status, what it wrote, how much processor
time and memory it took. The process that forks starts no threads: a library's would not be there in its children.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import resource
import signal
import subprocess
import sys
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

ROOT = Path(__file__).parent.parent
WALL_S = 60  # of a machine that others use too; processor time is what is limited
STREAMS = {"out": 1, "err": 2}


@dataclass(frozen=True, slots=True)
class Done:
    """How a call ended; `signal` is that which killed it (SIGXCPU: out of processor time, SIGALRM: it hung)."""

    status: int | None
    signal: str | None
    out: str
    err: str
    cpu_s: float
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class Call:
    """`call` is "module:function", `words` its arguments; `streams`: number → path, or None for one that is closed."""

    call: str
    words: Sequence[Any]
    place: str
    streams: Mapping[str, str | None] = dataclasses.field(default_factory=dict)
    encoding: str = "utf-8"
    cpu_s: int = 30
    more_bytes: int | None = None
    """The address space that it may have beyond that of the process that forks."""


class Server:
    """The process that forks, for as long as the context lasts; `modules` are imported first."""

    def __init__(self, *modules: str, environment: Mapping[str, str] | None = None) -> None:
        command = [sys.executable, "-m", "tests.forked", *modules]
        asked: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
        self._process = subprocess.Popen(command, env={**os.environ, **(environment or {})}, **asked)

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        with self._process:
            assert self._process.stdin is not None
            self._process.stdin.close()

    def run(self, call: Call) -> Done:
        asked, answers = self._process.stdin, self._process.stdout
        assert asked is not None and answers is not None
        print(json.dumps(dataclasses.asdict(call)), file=asked, flush=True)
        return Done(**json.loads(answers.readline()))

    def command(self, words: Sequence[str], place: Path, **fields: Any) -> Done:
        """`ewan WORDS`."""
        return self.run(Call("ewan.cli:main", [list(words), "ewan"], str(place), **fields))


def _serve(modules: Sequence[str]) -> None:
    for each in modules:
        importlib.import_module(each)
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        call = Call(**json.loads(line))
        print(json.dumps(dataclasses.asdict(_fork(call, answers.fileno()))), file=answers, flush=True)


def _fork(call: Call, answers: int) -> Done:
    place = Path(call.place)
    written = {name: place / f".{name}" for name in STREAMS}
    child = os.fork()
    if not child:
        os.close(answers)
        os.setsid()
        _be(call, {1: written["out"], 2: written["err"]})
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    os.killpg(child, signal.SIGKILL)  # what it may have left, while the number is still its own
    _, state, used = os.wait4(child, 0)
    texts = {
        name: path.read_bytes().decode(errors="replace") if path.exists() else "" for name, path in written.items()
    }
    for path in written.values():
        path.unlink(missing_ok=True)
    ended = os.WIFEXITED(state)
    return Done(
        status=os.WEXITSTATUS(state) if ended else None,
        signal=None if ended else signal.Signals(os.WTERMSIG(state)).name,
        cpu_s=used.ru_utime + used.ru_stime,
        peak_bytes=used.ru_maxrss * 1024,
        **texts,
    )


def _be(call: Call, written: Mapping[int, Path]) -> NoReturn:
    """The child: streams as a new process has them, limits, the call."""
    os.chdir(call.place)
    paths: dict[int, str | None] = {0: os.devnull, **{number: str(path) for number, path in written.items()}}
    paths |= {int(number): path for number, path in call.streams.items()}
    for number, path in paths.items():
        os.close(number)
        if path is not None:
            flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT
            opened = os.open(path, flags, 0o600)
            if opened != number:  # a lower one was closed before
                os.dup2(opened, number)
                os.close(opened)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        mode = "w" if number else "r"
        stream = None if paths[number] is None else os.fdopen(number, mode, encoding=call.encoding, closefd=False)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(WALL_S)
    resource.setrlimit(resource.RLIMIT_CPU, (call.cpu_s, call.cpu_s + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if call.more_bytes is not None:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        most = pages * resource.getpagesize() + call.more_bytes
        resource.setrlimit(resource.RLIMIT_AS, (most, most))
    os._exit(_status(call))


def _status(call: Call) -> int:
    status: Any = 0
    try:
        module, _, name = call.call.partition(":")
        getattr(sys.modules.get(module) or importlib.import_module(module), name)(*call.words)
    except SystemExit as ended:
        status = ended.code or 0
    except BaseException:
        traceback.print_exc()
        status = 1
    try:
        for stream in (sys.stdout, sys.stderr):
            if stream is not None:
                stream.flush()
    except OSError as error:  # what Python says and does where its own flush at the end fails
        os.write(2, f"Exception ignored: {error!r}\n".encode())
        status = 120
    return int(status)


if __name__ == "__main__":
    _serve(sys.argv[1:])
