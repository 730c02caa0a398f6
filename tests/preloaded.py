"""The command line `ewan` without its start: each call is forked from a process that has everything imported.

In: words, variables, a directory, an optional time limit. Out: what `subprocess.run` gives for the same call of
`ewan/cli.py`. An import of what a command needs takes 0.5 to 1.5 s of processor time, and the tests call the command a
thousand times.
The process that forks starts no thread but those of HARMLESS: a thread is missing in its children.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import unittest.mock
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).parent.parent
REQUEST_BYTES = 1 << 20
HARMLESS = {"jemalloc_bg_thd", "polars-ooc-clea"}
"""Threads that polars starts when it is imported: they give memory back and remove spilled files."""
SINGLE_THREADED = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


class Preloaded:
    """A process that forks commands, from its first call until the context ends."""

    def __init__(self) -> None:
        self._server: subprocess.Popen[bytes] | None = None
        self._place = tempfile.TemporaryDirectory(prefix="ewan-preloaded-")
        self._address = f"{self._place.name}/socket"
        self._lock = threading.Lock()

    def __enter__(self) -> Preloaded:
        return self

    def __exit__(self, *error: object) -> None:
        if self._server is not None:
            self._server.terminate()
            self._server.wait()
        self._place.cleanup()

    def run(
        self,
        words: Sequence[str],
        environment: Mapping[str, str],
        cwd: Path,
        timeout: float | None = None,
        given: str | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Runs `ewan WORDS` with `given` on its standard input; TimeoutExpired after `timeout` s, and it is killed."""
        with self._connection() as connection, contextlib.ExitStack() as files:
            source, output, errors = (files.enter_context(tempfile.TemporaryFile("w+")) for _ in range(3))
            source.write(given or "")
            source.seek(0)
            request = {"words": [str(word) for word in words], "environment": dict(environment), "cwd": str(cwd)}
            text = json.dumps(request).encode()
            assert len(text) < REQUEST_BYTES
            socket.send_fds(connection, [text], [source.fileno(), output.fileno(), errors.fileno()])
            process = int(connection.recv(64))
            connection.settimeout(timeout)
            try:
                answer = connection.recv(64)
            except TimeoutError:
                os.kill(process, signal.SIGKILL)
                raise subprocess.TimeoutExpired(["ewan", *words], timeout or 0) from None
            assert answer, "the process that forks commands ended"
            output.seek(0)
            errors.seek(0)
            return subprocess.CompletedProcess(["ewan", *words], int(answer), output.read(), errors.read())

    def _connection(self) -> socket.socket:
        with self._lock:
            if self._server is None:
                self._start()
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, REQUEST_BYTES)
        connection.connect(self._address)
        return connection

    def _start(self) -> None:
        command = [sys.executable, "-m", "tests.preloaded", self._address]
        environment = {**os.environ, **SINGLE_THREADED}
        null, pipe = subprocess.DEVNULL, subprocess.PIPE
        self._server = subprocess.Popen(command, cwd=ROOT, env=environment, stdin=null, stdout=pipe)
        assert self._server.stdout is not None
        assert self._server.stdout.readline() == b"ready\n", "the process that forks commands did not start"


def _serve(address: str) -> None:
    """Forks a command for each connection, and answers with its process and then with its status."""
    # At its exit polars waits for one of its threads.
    with unittest.mock.patch.object(atexit, "register"):
        import polars  # noqa: F401
    from ewan import cli

    for name in cli.names():
        cli.load(name)
    gc.collect()
    gc.freeze()
    threads = {(task / "comm").read_text().strip() for task in Path("/proc/self/task").iterdir()}
    assert threads <= HARMLESS | {Path("/proc/self/comm").read_text().strip()}, f"an import starts threads: {threads}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener, selectors.DefaultSelector() as waiting:
        listener.bind(address)
        listener.listen(16)
        os.write(1, b"ready\n")
        waiting.register(listener, selectors.EVENT_READ)
        while True:
            for key, _ in waiting.select():
                if key.fileobj is listener:
                    connection, _ = listener.accept()
                    process = _fork(listener, connection)
                    connection.send(str(process).encode())
                    waiting.register(os.pidfd_open(process), selectors.EVENT_READ, (process, connection))
                else:
                    process, connection = key.data
                    waiting.unregister(key.fileobj)
                    os.close(key.fd)
                    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
                    with connection, contextlib.suppress(BrokenPipeError):
                        connection.send(str(status).encode())


def _fork(listener: socket.socket, connection: socket.socket) -> int:
    text, streams, _, _ = socket.recv_fds(connection, REQUEST_BYTES, 3)
    process = os.fork()
    if process:
        for each in streams:
            os.close(each)
        return process
    listener.close()
    connection.close()
    _be(json.loads(text), streams)


def _be(request: Mapping[str, object], streams: Sequence[int]) -> NoReturn:
    """The child: streams, variables and directory of the call, the command, and the end of a Python program."""
    for number, each in enumerate(streams):
        os.dup2(each, number)
        os.close(each)
    words, environment = request["words"], request["environment"]
    assert isinstance(words, list) and isinstance(environment, dict)
    os.chdir(str(request["cwd"]))
    os.environ.clear()
    os.environ.update(environment)
    sys.argv[:] = [str(ROOT / "ewan" / "cli.py"), *words]
    status = 0
    try:
        from ewan import cli

        cli.main(args=words, prog_name="ewan")
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]  # as Python does at its end
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    os._exit(status)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        _serve(sys.argv[1])
