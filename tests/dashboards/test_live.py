"""A live lab scraped by a real Prometheus, with traffic: every query of the dashboard gives data, and the right data.

Prometheus (Debian's, unpacked by `make test` or installed) and the page that it asks run in one of the lab's own nodes,
on its loopback. Needs root, and fails without it. Grafana is not run here: what it asks is asked, what it draws is not
seen.
"""

from __future__ import annotations

import json
import math
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from ewan.labs.render import dashboards, panels
from ewan.labs.runtime import spinners
from ewan.labs.runtime.requests import StatsRequest
from tests.conftest import ROOT, Ewan

pytestmark = pytest.mark.live

LAB = f"prom{os.getpid() % 10000}"
RATE_BPS = 10_000_000
DESCRIPTION = f"""
name: {LAB}
topology: dumbbell
rtt: 20ms
ip: 4
wan: {{rate: 10Mbit/s, loss: 1%, forward: {{buffer: 100pkt}}, backward: {{buffer: 50kB, rate: 5Mbit/s}}}}
"""
PAGE, PROMETHEUS = "127.0.0.1:9324", "127.0.0.1:9090"
OBSERVER = "left1"
# Grafana takes four times the interval of scrapes for $__rate_interval when nobody looks more closely.
WINDOW_S = 4 * dashboards.SCRAPE_S
# Of a rate over the window. Its samples bear the instants at which scrapes began, and were taken while they lasted: so
# rates are judged by a window whose scrapes were prompt.
TOLERANCE = 0.03
PROMPT_S = 0.01 * (WINDOW_S - dashboards.SCRAPE_S)
# A page may be a second old, and Prometheus divides by the time between scrapes.
RATE_TOLERANCE = TOLERANCE + 1 / (WINDOW_S - dashboards.SCRAPE_S)

FETCH = """
import json, sys, urllib.error, urllib.request
for line in sys.stdin:
    try:
        with urllib.request.urlopen(line.strip(), timeout=10) as answer:
            said = answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        said = error.code, error.read().decode()
    except OSError as error:
        said = 0, str(error)
    print(json.dumps(said), flush=True)
"""


def tool(name: str) -> str:
    """Prometheus' binaries: of PATH, else as tests/unpack.sh leaves them."""
    found = shutil.which(name) or str(ROOT / "target/prometheus/usr/bin" / name)
    assert Path(found).exists(), f"{found} is not there: run tests/unpack.sh target/prometheus prometheus"
    return found


class Inside:
    """The node in which Prometheus and its page run, and a process in it that fetches what they say."""

    def __init__(self, environment: dict[str, str]) -> None:
        self.environment = environment
        command = self.command(sys.executable, "-uc", FETCH)
        pipe = subprocess.PIPE
        self.fetcher = subprocess.Popen(command, env=environment, text=True, stdin=pipe, stdout=pipe)
        assert self.fetcher.stdin is not None and self.fetcher.stdout is not None
        self._asked, self._said = self.fetcher.stdin, self.fetcher.stdout

    def command(self, *words: str, node: str = OBSERVER) -> list[str]:
        return [sys.executable, str(ROOT / "ewan" / "cli.py"), "lab", "exec", "--lab", LAB, node, "--", *words]

    def end(self) -> None:
        self.fetcher.communicate(timeout=30)

    @contextmanager
    def running(self, *words: str, log: Path) -> Iterator[None]:
        with log.open("wb") as output:
            process = subprocess.Popen(
                self.command(*words), env=self.environment, stdout=output, stderr=output, stdin=subprocess.DEVNULL
            )
        try:
            yield
        finally:
            process.terminate()
            process.wait(timeout=30)

    def fetch(self, *urls: str) -> list[tuple[int, str]]:
        """Status and body of each; status 0 where nobody answers."""
        found = []
        for url in urls:
            self._asked.write(f"{url}\n")
            self._asked.flush()
            status, body = json.loads(self._said.readline())
            found.append((status, body))
        return found

    def ask(self, *queries: str, at: float | None = None) -> list[list[dict[str, Any]]]:
        """Each query's vector at an instant; now, if none is given."""
        instant = "" if at is None else f"&time={at:.3f}"
        answers = self.fetch(*(f"http://{PROMETHEUS}/api/v1/query?query={quote(query)}{instant}" for query in queries))
        found = []
        for query, (status, body) in zip(queries, answers, strict=True):
            assert status == 200, f"{query}: {body}"
            found.append(json.loads(body)["data"]["result"])
        return found

    def value(self, query: str, at: float | None = None) -> float:
        (only,) = self.ask(query, at=at)[0]
        return float(only["value"][1])

    def by_direction(self, query: str, at: float | None = None) -> dict[str, float]:
        return {each["metric"]["direction"]: float(each["value"][1]) for each in self.ask(query, at=at)[0]}


def filled(expression: str) -> str:
    """A query as Grafana sends it when all is chosen."""
    for name in ("lab", "link", "direction"):
        expression = expression.replace(f"${name}", ".*")
    return expression.replace("$__rate_interval", f"{WINDOW_S}s")


@pytest.fixture(scope="module")
def watched(ewan: Ewan, state: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Inside]:
    """The lab under overload in both directions, and Prometheus with a full window of scrapes."""
    assert os.geteuid() == 0, "this test makes a live lab: run it as root"
    directory = tmp_path_factory.mktemp("prometheus")
    (directory / "watched.lab.yaml").write_text(DESCRIPTION)
    up = ewan("up", str(directory / "watched.lab.yaml"))
    assert up.returncode == 0, up.stderr
    (directory / "prometheus.yml").write_text(dashboards.prometheus_file([PAGE]))
    scraper = (
        tool("prometheus"),
        f"--config.file={directory / 'prometheus.yml'}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address={PROMETHEUS}",
    )
    page = (sys.executable, str(ROOT / "ewan" / "cli.py"), "lab", "metrics", LAB, "--listen", PAGE)
    # Again and again until its server is there; what `down` finds in the nodes at last, it ends.
    client = "for try in $(seq 60); do iperf3 -c right1 -u -l 1200 -b 20M -t 600 $0 && exit; sleep 0.5; done"
    try:
        with ExitStack() as stack:
            inside = Inside(os.environ | {"EWAN_STATE": str(state), "NO_COLOR": "1"})
            stack.callback(inside.end)
            for name, words in (("page", page), ("prometheus", scraper)):
                stack.enter_context(inside.running(*words, log=directory / f"{name}.log"))
            # One way each: the receiver's reports go the other way.
            for number, more in enumerate(("", "--reverse")):
                port = str(5201 + number)
                log = directory / f"iperf-{number}.log"
                server = inside.command("iperf3", "-s", "-p", port, node="right1")
                process = subprocess.Popen(server, env=inside.environment, stdout=subprocess.DEVNULL)
                stack.callback(process.wait, 30)
                stack.callback(process.terminate)
                stack.enter_context(inside.running("sh", "-c", client, f"-p {port} {more}", log=log))
            wait_for_scrapes(inside, directory)
            yield inside
    finally:
        down = ewan("down", LAB)
        assert down.returncode == 0, down.stderr


def wait_for_scrapes(inside: Inside, directory: Path) -> None:
    """Until a whole window of scrapes shows packets in both directions."""
    rate = f"rate(ewan_link_out_packets_total[{WINDOW_S}s])"
    moving = f"min_over_time({rate}[{2 * WINDOW_S}s:{dashboards.SCRAPE_S}s]) > 100"
    until = time.monotonic() + 90
    while time.monotonic() < until:
        status, body = inside.fetch(f"http://{PROMETHEUS}/-/ready")[0]
        if status == 200 and len(inside.ask(moving)[0]) == 2:
            return
        time.sleep(1)
    logs = "\n".join(f"{log.name}: {log.read_text()[-1500:]}" for log in sorted(directory.glob("*.log")))
    raise AssertionError(f"no traffic was seen ({body}):\n{logs}")


def test_the_page_keeps_to_prometheus_rules(watched: Inside) -> None:
    ((status, page),) = watched.fetch(f"http://{PAGE}/metrics")
    assert status == 200
    lint = subprocess.run([tool("promtool"), "check", "metrics"], input=page, capture_output=True, text=True)
    assert (lint.returncode, lint.stdout, lint.stderr) == (0, "", "")


def test_the_files_are_what_prometheus_reads(tmp_path: Path) -> None:
    (tmp_path / "prometheus.yml").write_text(dashboards.prometheus_file(["ewan-lot-hop1:9324", PAGE]))
    check = subprocess.run(
        [tool("promtool"), "check", "config", str(tmp_path / "prometheus.yml")], capture_output=True, text=True
    )
    assert check.returncode == 0, check.stderr


def test_every_query_of_the_dashboard_gives_data(watched: Inside) -> None:
    queries = [filled(query.expression) for panel in panels.PANELS for query in panel.queries]
    for query, found in zip(queries, watched.ask(*queries), strict=True):
        assert found, f"no data: {query}"
        values = [float(each["value"][1]) for each in found]
        assert all(math.isfinite(value) and value >= 0 for value in values), (query, values)


def test_the_variables_list_what_there_is(watched: Inside) -> None:
    for variable in json.loads(dashboards.dashboard_file())["templating"]["list"]:
        series, label = (
            filled(variable["query"]["query"]).removeprefix("label_values(").removesuffix(")").rsplit(",", 1)
        )
        (found,) = watched.ask(f"group by ({label.strip()}) ({series})")
        values = sorted(each["metric"][variable["name"]] for each in found)
        assert values == {"lab": [LAB], "link": ["core"], "direction": ["backward", "forward"]}[variable["name"]]


@pytest.fixture(scope="module")
def prompt(watched: Inside) -> float:
    """The instant (seconds since 1970) at the end of a window in which every scrape was prompt."""
    slowest = f"max_over_time(scrape_duration_seconds[{WINDOW_S}s])"
    until = time.monotonic() + 120
    # Whoever else asks for the page leaves Prometheus one that is up to a second old.
    time.sleep(WINDOW_S)
    while (found := watched.value(slowest)) > PROMPT_S:
        assert time.monotonic() < until, f"the machine is too busy: a scrape took {found:.2f} s"
        time.sleep(1)
    return time.time()


def panel(title: str, number: int = 0) -> str:
    (found,) = [panel for panel in panels.PANELS if panel.title == title]
    return filled(found.queries[number].expression)


def test_an_overloaded_link_shows_its_rate(watched: Inside, prompt: float) -> None:
    rates = {"forward": RATE_BPS, "backward": RATE_BPS / 2}
    assert watched.by_direction(panel("Rate out"), prompt) == pytest.approx(rates, rel=RATE_TOLERANCE)
    assert watched.by_direction(panel("Rate out", 1)) == rates
    used = watched.by_direction(panel("Utilisation"), prompt)
    assert used == pytest.approx({"forward": 1, "backward": 1}, rel=RATE_TOLERANCE)


def test_what_comes_in_goes_out_or_has_a_cause(watched: Inside, prompt: float) -> None:
    def rate(metric: str, cause: str = "") -> float:
        labels = 'direction="forward"' + (f',cause="{cause}"' if cause else "")
        return watched.value(f"rate(ewan_link_{metric}_packets_total{{{labels}}}[{WINDOW_S}s])", prompt)

    came, left = rate("in"), rate("out")
    lost, full = rate("dropped", "loss"), rate("dropped", "queue_full")
    assert came == pytest.approx(left + lost + full, rel=TOLERANCE)
    # 1 % on purpose: 5 standard deviations of some 16 000 packets in the window.
    assert lost / came == pytest.approx(0.01, abs=0.004)
    assert full > 0.2 * came


def test_an_overloaded_queue_is_full(watched: Inside) -> None:
    assert watched.by_direction(panel("Queue, packets", 1)) == {"forward": 100}
    assert 80 <= watched.by_direction(panel("Queue, packets"))["forward"] <= 100
    assert watched.by_direction(panel("Queue, bytes", 1)) == {"backward": 50_000}
    assert 40_000 <= watched.by_direction(panel("Queue, bytes"))["backward"] <= 50_000


def test_percentiles_are_those_of_the_links_own(watched: Inside, state: Path) -> None:
    """Prometheus' from buckets, the spinner's from its classes; since the start, so that both see the same packets."""
    query = 'histogram_quantile(0.5, ewan_link_lateness_seconds_bucket{direction="forward"})'
    own = spinners.ask(state / LAB, 0, StatsRequest()).links["core"].forward.lateness_ns
    # A bucket is up to half as wide as its lower end, a class a sixteenth.
    assert 0.6 * own.p50 <= 1e9 * watched.value(query) <= 1.6 * own.p50, own
    counted = watched.value('ewan_link_lateness_seconds_count{direction="forward"}')
    assert counted == pytest.approx(own.samples, rel=0.5)


def test_a_change_of_the_link_is_told(watched: Inside, ewan: Ewan) -> None:
    assert ewan("lab", "set", "--lab", LAB, "core", "rate=15Mbit/s", "--direction", "forward").returncode == 0
    time.sleep(1.2)  # the page is kept for a second
    ((_, page),) = watched.fetch(f"http://{PAGE}/metrics")
    (line,) = [line for line in page.splitlines() if line.startswith("ewan_link_rate") and '"forward"' in line]
    assert line.endswith(" 1875000")


def test_what_is_not_the_page_is_said_so(watched: Inside) -> None:
    found = [status for status, _ in watched.fetch(f"http://{PAGE}/", f"http://{PAGE}/metricz")]
    assert found == [200, 404]


def test_a_taken_port_is_one_line(watched: Inside) -> None:
    done = subprocess.run(
        watched.command(sys.executable, str(ROOT / "ewan" / "cli.py"), "lab", "metrics", LAB, "--listen", PAGE),
        env=watched.environment,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"ewan: {PAGE}: somebody listens there already: name another port with --listen\n"


def test_a_dead_spinner_is_told_and_no_error(watched: Inside, ewan: Ewan) -> None:
    """The last test of this file: the lab is good for nothing after it."""
    (status,) = json.loads(ewan("ps", LAB, "--json").stdout)
    os.kill(status["spinners"][0]["pid"], signal.SIGKILL)
    time.sleep(1.2)
    ((status, page),) = watched.fetch(f"http://{PAGE}/metrics")
    assert status == 200
    assert f'ewan_up{{lab="{LAB}",link="core",backend="user"}} 0' in page.splitlines()
    assert "ewan_link_" not in page
    until = time.monotonic() + 30
    while watched.value("ewan_up") != 0:
        assert time.monotonic() < until, "Prometheus goes on showing what was"
        time.sleep(1)
    assert watched.value('up{job="ewan"}') == 1
