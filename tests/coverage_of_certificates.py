"""Verifies hundreds of good labs in simulated time and counts how often U held.

usage: python -m tests.coverage_of_certificates [RUNS]

In: 28 kinds of labs, each with as many seeds as it takes for RUNS (default 500). Out: a line a quantity: its rows, in
how many of them what was configured lies within the measured value ± U, and how many values are beyond the physical
limit by more than U. Exit status 1 where a lab was not verified, a quantity is covered in less than 95 % of its rows,
or a value is beyond the limit. A run takes a second and a half on two CPUs: this is run by hand, weekly and before a
release.
"""

from __future__ import annotations

import math
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ewan.calibration import report
from ewan.labs.record import Certificate, Row
from tests.torture.commands import run

KINDS = {
    "plain": "topology: dumbbell\nrtt: 20ms\nwan: {rate: 20Mbit/s}\n",
    "long": "topology: dumbbell\nrtt: 200ms\nwan: {rate: 10Mbit/s}\n",
    "short": "topology: dumbbell\nrtt: 1ms\nwan: {rate: 100Mbit/s}\n",
    "slow": "topology: dumbbell\nrtt: 50ms\nwan: {rate: 1Mbit/s}\n",
    "lossy": "topology: dumbbell\nrtt: 20ms\nwan: {rate: 20Mbit/s, loss: 1%}\n",
    "lossier": "topology: dumbbell\nrtt: 20ms\nwan: {rate: 20Mbit/s, loss: 5%}\n",
    "bursts of loss": "topology: dumbbell\nrtt: 20ms\n"
    "wan: {rate: 20Mbit/s, loss: {gilbert-elliott: {to_bad: 1%, to_good: 20%}}}\n",
    "jitter": "topology: dumbbell\nrtt: 40ms\nwan: {rate: 20Mbit/s, jitter: 2ms}\n",
    "uniform jitter": "topology: dumbbell\nrtt: 40ms\nwan: {rate: 20Mbit/s, jitter: 1ms, distribution: uniform}\n",
    "duplicates": "topology: dumbbell\nrtt: 20ms\nwan: {rate: 20Mbit/s, duplicate: 1%}\n",
    "codel": "topology: dumbbell\nrtt: 40ms\nwan: {rate: 20Mbit/s, queue: codel}\n",
    "fq_codel": "topology: dumbbell\nrtt: 40ms\nwan: {rate: 20Mbit/s, queue: fq-codel}\n",
    "asymmetric": "topology: dumbbell\nrtt: 40ms\nwan: {rate: 16Mbit/s, backward: {rate: 1Mbit/s}}\n",
    "few acknowledgements": "topology: dumbbell\nrtt: 50ms\nwan: {rate: 50Mbit/s, backward: {rate: 500kbit/s}}\n",
    "token bucket": "topology: dumbbell\nrtt: 20ms\nwan: {rate: 50Mbit/s, burst: 32kB}\n",
    "many duplicates": "topology: dumbbell\nrtt: 20ms\nwan: {rate: 20Mbit/s, duplicate: 50%}\n",
    "small buffer": "topology: dumbbell\nrtt: 40ms\nwan: {rate: 20Mbit/s, buffer: 20pkt}\n",
    "deep buffer": "topology: dumbbell\nrtt: 20ms\nwan: {rate: 20Mbit/s, buffer: 4BDP}\n",
    "IPv6": "topology: dumbbell\nip: 6\nrtt: 20ms\nwan: {rate: 20Mbit/s}\n",
    "jumbo frames": "topology: dumbbell\nrtt: 20ms\nmtu: 9000\nwan: {rate: 100Mbit/s}\n",
    "three pairs": "topology: {dumbbell: {pairs: 3}}\nrtt: [10ms, 20ms, 40ms]\nwan: {rate: 20Mbit/s}\n",
    "parking lot": "topology: {parking-lot: {hops: 2}}\nrtt: 40ms\nwan: {rate: 20Mbit/s}\n",
    "star": "topology: {star: {arms: 3}}\nrtt: 30ms\nwan: {rate: 20Mbit/s}\n",
    "aggregated": "topology: dumbbell\nip: 4\nrtt: 20ms\n"
    "wan: {rate: 10Mbit/s, buffer: 20pkt, aggregate: {packets: 8, gap: 1ms, time: 4ms}}\n",
    "half duplex": "topology: {parking-lot: {hops: 5}}\nip: 4\nrtt: 60ms\n"
    "wan: {rate: 10Mbit/s, buffer: 20pkt, duplex: half}\n",
    "netem": "topology: dumbbell\nrtt: 40ms\nemulator: kernel\n"
    "wan: {rate: 5Mbit/s, buffer: 20pkt, forward: {loss: 10%, duplicate: 20%, corrupt: 2%}}\n",
    "RED of the kernel": "topology: dumbbell\nrtt: 20ms\nemulator: tbf\n"
    "wan: {rate: 10Mbit/s, buffer: 50pkt, queue: {red: {min: 10kB, max: 40kB}}}\n",
    "ring": "topology: {ring: {routers: 4}}\nrtt: 40ms\nwan: {rate: 20Mbit/s}\n",
}
LIMITS = ("rate", "TCP goodput")
"""Quantities that no true measurement exceeds: the link, or what its headers leave of it, is the limit."""
DISTANCES = ("delay distribution",)
"""Statistics of a test, which are no measurement of a value: their tolerance alone says something."""
LEAST_COVERED = 0.95


@dataclass(slots=True)
class Coverage:
    """Rows of one quantity."""

    rows: int = 0
    covered: int = 0
    beyond: int = 0

    @property
    def enough(self) -> bool:
        """A whole number of rows: of few, one may be uncovered."""
        return self.beyond == 0 and self.covered >= math.floor(LEAST_COVERED * self.rows)


def counted(certificates: Iterable[Certificate]) -> dict[str, Coverage]:
    """Coverage by quantity, of the rows that were judged."""
    found: defaultdict[str, Coverage] = defaultdict(Coverage)
    for row in (row for certificate in certificates for row in certificate.rows if row.verdict in ("ok", "outside")):
        if row.error is not None and row.quantity not in DISTANCES:
            _count(found[row.quantity], row, row.error)
    return dict(found)


def _count(coverage: Coverage, row: Row, error: float) -> None:
    uncertainty = row.uncertainty.expanded if row.uncertainty is not None else 0.0
    rounding = 1e-9 * abs(row.configured or 0.0)  # of floating point
    coverage.rows += 1
    coverage.covered += abs(error) <= uncertainty + rounding
    coverage.beyond += row.quantity in LIMITS and error > uncertainty + rounding


def verified(kind: str, seed: int) -> Certificate:
    """The certificate of a lab of this kind with this seed."""
    with tempfile.TemporaryDirectory(prefix="ewan-coverage-") as name:
        place = Path(name)
        (place / "good.lab.yaml").write_text(f"{KINDS[kind]}seed: {seed}\n")
        status, said = run(place, "lab", "good.lab.yaml", "--runtime", "virtual")
        kept = list((place / "results").glob("*/certificate.json"))
        if not kept:
            raise AssertionError(f"{kind}, seed {seed}: exit status {status}: {said}")
        return report.read(kept[0])


def main(words: list[str]) -> int:
    runs = int(words[0]) if words else 500
    seeds = math.ceil(runs / len(KINDS))
    with ThreadPoolExecutor(2) as pool:
        made = {(kind, seed): pool.submit(verified, kind, seed) for seed in range(1, seeds + 1) for kind in KINDS}
        certificates = {key: each.result() for key, each in made.items()}
    bad = [key for key, certificate in certificates.items() if not certificate.passed]
    for kind, seed in bad:
        print(f"not verified: {kind}, seed {seed}")
    print(f"{'quantity':<24}{'rows':>7}{'within U':>10}{'beyond limit':>14}")
    coverages = counted(certificates.values())
    for quantity, each in sorted(coverages.items()):
        print(f"{quantity:<24}{each.rows:>7}{each.covered / each.rows:>10.1%}{each.beyond:>14}")
    print(f"{len(certificates)} verifications, {len(bad)} not verified")
    return 1 if bad or not all(each.enough for each in coverages.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
