"""A browser at Studio's page, as a benchmark needs it: frames, CPU, memory; and moments of links that are made up.

In: the address of a server. Out: numbers. Playwright drives Debian's Chromium without a window.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import subprocess
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import orjson
import psutil

from ewan.labs.base.units import GIGA, MEGA
from ewan.labs.runtime.base import LabError

CHROMIUM = "/usr/bin/chromium"
FLAGS = (
    *("--disable-gpu", "--disable-quic", "--disable-background-networking", "--disable-component-update"),
    *(("--no-sandbox",) if os.geteuid() == 0 else ()),
)
FRAME_S = 0.05
FRAMES = 100
"""Made before the first is sent, and sent again and again."""
COUNT = """seconds => new Promise(done => {
  let frames = 0;
  const begun = performance.now();
  const next = () => {
    frames++;
    const passed = performance.now() - begun;
    if (passed < seconds * 1000) requestAnimationFrame(next);
    else done(frames * 1000 / passed);
  };
  requestAnimationFrame(next);
})"""
ELSEWHERE = """const Real = WebSocket;
window.WebSocket = class extends Real {
  constructor(address) { super(address.endsWith("/ws/live/NAME") ? "ws://127.0.0.1:PORT/" : address); }
};"""


@contextlib.contextmanager
def made_up(links: Sequence[str]) -> Iterator[int]:
    """A WebSocket that sends frames of these links, as a server of Studio does; its port."""
    import websockets.asyncio.server as sockets
    from websockets.exceptions import ConnectionClosed

    told = random.Random(1)
    frames = [
        orjson.dumps([_moment(told, link, way) for link in links for way in ("forward", "backward")])
        for _ in range(FRAMES)
    ]
    loop = asyncio.new_event_loop()
    ready: list[int] = []
    ended = asyncio.Event()

    async def send(socket: sockets.ServerConnection) -> None:
        number = 0
        with contextlib.suppress(ConnectionClosed):  # the page has gone
            while True:
                await socket.send(frames[number % FRAMES])
                number += 1
                await asyncio.sleep(FRAME_S)

    async def serve() -> None:
        async with sockets.serve(send, "127.0.0.1", 0) as server:
            ready.append(next(iter(server.sockets)).getsockname()[1])
            await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    try:
        while not ready:
            time.sleep(0.01)
        yield ready[0]
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()


def _moment(told: random.Random, link: str, way: str) -> dict[str, Any]:
    return {
        "link": link,
        "direction": way,
        "rate_bps": told.randrange(GIGA),
        "queue_bytes": told.randrange(MEGA),
        "dropped_packets": 0,
        "lateness_ns": 1000,
    }


def cpu_s(processes: Iterable[psutil.Process]) -> float:
    """CPU seconds of processes so far."""
    found = 0.0
    for process in processes:
        with contextlib.suppress(psutil.Error):
            found += sum(process.cpu_times()[:2])
    return found


class Undriven:
    """A browser with a page that nobody drives, as a person's: what drives one has it keep all that the page loads."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> Undriven:
        quiet = subprocess.DEVNULL
        self._profile = Path(self._stack.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        # The port also keeps it from ending once the page is there.
        own = ("--headless=new", "--remote-debugging-port=0", f"--user-data-dir={self._profile}")
        command = [CHROMIUM, *FLAGS, *own, "--window-size=1280,720", self._address]
        browser = subprocess.Popen(command, stdin=quiet, stdout=quiet, stderr=quiet)
        self._stack.callback(browser.wait)
        self._stack.callback(browser.terminate)
        self._browser = psutil.Process(browser.pid)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def cpu_s(self) -> float:
        """CPU seconds of the browser so far."""
        return cpu_s(self._browser.children(recursive=True))

    def memory_bytes(self) -> int:
        """Of its processes that draw pages, what is theirs alone: what nobody uses any more included."""
        found = 0
        for process in self._browser.children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if "--type=renderer" in process.cmdline():
                    found += process.memory_full_info().uss
        return found

    def heap_bytes(self) -> int:
        """What the page's script still uses: what nobody uses is collected before (V8 does so when it likes)."""
        from websockets.sync.client import connect

        port = (self._profile / "DevToolsActivePort").read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json/list") as listed:
            (page,) = [each for each in orjson.loads(listed.read()) if each["type"] == "page"]
        answers = {}
        with connect(page["webSocketDebuggerUrl"]) as socket:
            for number, method in enumerate(("HeapProfiler.collectGarbage", "Runtime.getHeapUsage")):
                socket.send(orjson.dumps({"id": number, "method": method}).decode())
                while number not in answers:
                    said = orjson.loads(socket.recv())
                    answers[said.get("id")] = said
        return int(answers[1]["result"]["usedSize"])


class Browsing:
    """A browser with one page; `moments`: the port of `made_up`, where they are not the server's."""

    def __init__(self, moments: int | None = None) -> None:
        try:
            from playwright.sync_api import sync_playwright
        except ImportError:
            raise LabError("Playwright is missing: make lint installs it (requirements-browser.lock)") from None
        self._moments = moments
        self._stack = contextlib.ExitStack()
        self._playwright = sync_playwright()

    def __enter__(self) -> Browsing:
        before = set(psutil.Process().children(recursive=True))
        playwright = self._stack.enter_context(self._playwright)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        self._stack.callback(browser.close)
        self._browser, self._before = browser, before
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.close()

    def open(self, address: str, lab: str) -> None:
        """The page, until it shows the links of a lab that is up."""
        context = self._browser.new_context(viewport={"width": 1280, "height": 720}, bypass_csp=True)
        self._page = context.new_page()
        if self._moments is not None:
            self._page.add_init_script(ELSEWHERE.replace("NAME", lab).replace("PORT", str(self._moments)))
            up = [{"lab": lab, "runtime": "netns", "state": "complete", "links": [], "down": []}]
            self._page.route("**/api/live", lambda route: route.fulfill(json=up))
        self._page.goto(address)
        self._page.locator(".live-links").wait_for(state="attached")
        self._page.locator(".link-words .now:not(:empty)").first.wait_for(state="attached")
        time.sleep(1)

    def frames_s(self, seconds: float) -> float:
        """Frames a second that the browser draws."""
        found: float = self._page.evaluate(COUNT, seconds)
        return found

    def moving_frames_s(self, seconds: float) -> float:
        """The same while the drawing is moved and zoomed."""
        self._page.evaluate(f"window.counted = ({COUNT})({seconds})")
        self._page.mouse.move(600, 400)
        begun = time.monotonic()
        while (passed := time.monotonic() - begun) < seconds / 2:
            self._page.mouse.wheel(0, -40 if passed < seconds / 4 else 40)
            time.sleep(0.02)
        self._page.mouse.down()
        while (passed := time.monotonic() - begun) < seconds:
            self._page.mouse.move(600 + 100 * (passed / seconds), 400)
            time.sleep(0.02)
        self._page.mouse.up()
        found: float = self._page.evaluate("window.counted")
        return found

    def cpu_s(self) -> float:
        """CPU seconds of all processes of the browser so far."""
        return cpu_s(self._processes())

    def _processes(self) -> list[psutil.Process]:
        found = []
        for process in psutil.Process().children(recursive=True):
            with contextlib.suppress(psutil.Error):
                if process not in self._before and "chromium" in (process.cmdline() or [""])[0]:
                    found.append(process)
        return found
