"""What is kept of a host, its page and that of a lab, readings of another instrument, and the ends of a path."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import jsonschema
import orjson
import pytest

from ewan.calibration import page, path, reference, report
from ewan.calibration.envelope import Frontier, LoadLateness
from ewan.calibration.host import accuracy, calibrations, processors
from ewan.calibration.host.accuracy import Accuracy, DelayPoint, LossPoint, QueuePoint, RatePoint, SpacingPoint
from ewan.calibration.host.calibrations import HostCalibration
from ewan.calibration.host.paths import PacketRate, StackLatency
from ewan.calibration.tests.captured import captured_certificate, captured_timers
from ewan.calibration.tests.plans import plan
from ewan.calibration.tests.test_host_figures import FOUND
from ewan.labs.base import cache
from ewan.labs.base.codec import replace
from ewan.labs.base.errors import UserError
from ewan.labs.context import Context
from ewan.labs.record import Certificate, Uncertainty, to_json
from ewan.labs.record.schema import certificate_schema
from ewan.labs.record.traffic import Endpoint

pytestmark = pytest.mark.slow

LOADS = tuple(LoadLateness(share, 1_000, True, 4e3, 3e4, 6e4, 2e5, 0, 0) for share in (0.5, 0.9))
LINKS = tuple(
    Frontier("user", size, count, 300_000 / count**0.2 - 50 * size, "rate", 1e-5, LOADS)
    for count in (1, 4)
    for size in (64, 1500)
)
EXACT = Accuracy(
    delays=tuple(DelayPoint(ns, 700, ns + 9e3, ns + 4e4, ns + 9e4, ns + 2e5) for ns in (10**6, 10**7)),
    rates=(RatePoint(10**6, 1e-5, 1e-3), RatePoint(10**9, None, None)),
    spacings=(
        SpacingPoint(10**10, 105_000_000, 1_000, 117_181.0, ((0.0, 900.0), (0.5, 1e5), (1.0, 1e6)), 9.0),
        SpacingPoint(10**8, 105_000_000, 1_000, 123_040.0, ((0.0, 1.2e5), (0.5, 1.23e5), (1.0, 1.3e5)), 1.9),
    ),
    loss=LossPoint(0.1, 7_500, 750, 0.09, 0.11, ((1, 600), (2, 65)), 1.0, 2, True),
    queue=QueuePoint(162, 161.0),
)


@pytest.fixture
def certificate() -> Certificate:
    return captured_certificate()


@pytest.fixture
def host() -> HostCalibration:
    circumstances = {"kernel": "6.18", "CPU": "2 × a CPU"}
    latency = (StackLatency(0, 1_000, 3_000, 6_000, 16_000, 90_000, 1_500.0),)
    return HostCalibration(
        fingerprint=calibrations.fingerprint(circumstances),
        circumstances=circumstances,
        time="2026-11-01T10:00:00+00:00",
        profile="default",
        elapsed_ns=50 * 10**9,
        timers=captured_timers(),
        processors=processors.measure(),
        paths=replace(FOUND, latency=latency, packet_rates=(PacketRate(64, 250_000.5, 1_000, 0),)),
        links=LINKS,
        absent={"kernel": "this kernel lacks netem"},
        accuracy=EXACT,
        virtual=None,
    )


def test_what_is_kept_is_read_back(host: HostCalibration) -> None:
    assert calibrations.from_json(calibrations.to_json(host)) == host
    with pytest.raises(ValueError, match="ewan measure lab makes one"):
        calibrations.from_json(b'{"format": "ewan-host/0"}')


def test_it_is_void_where_anything_differs_that_it_depends_on() -> None:
    known = {"kernel": "6.18", "governor": "performance", "clock source": "tsc"}
    assert calibrations.fingerprint(known) == calibrations.fingerprint(dict(reversed(known.items())))
    for name in known:
        assert calibrations.fingerprint({**known, name: "another"}) != calibrations.fingerprint(known)


def test_it_is_kept_in_the_cache_and_a_damaged_file_counts_as_none(host: HostCalibration, tmp_path: Path) -> None:
    told = Context.of({**os.environ, "EWAN_CACHE": str(tmp_path / "cache")})
    assert calibrations.load(told) is None
    place = calibrations.save(told, host)
    assert calibrations.load(told) == host and place.parent == tmp_path / "cache/host"
    place.write_bytes(place.read_bytes()[:-9])
    assert calibrations.load(told) is None


@pytest.mark.parametrize(
    "environment, where",
    [
        ({"EWAN_CACHE": "off"}, None),
        ({"EWAN_CACHE": "/a/b"}, "/a/b"),
        ({"XDG_CACHE_HOME": "/x", "HOME": "/h"}, "/x/ewan"),
        ({"XDG_CACHE_HOME": "x", "HOME": "/h"}, "/h/.cache/ewan"),
        ({}, None),
    ],
)
def test_the_cache_is_where_the_scripts_have_it(environment: dict[str, str], where: str | None) -> None:
    assert cache.root(environment) == (None if where is None else Path(where))


def test_a_cache_that_is_no_absolute_path_is_refused() -> None:
    with pytest.raises(UserError, match="write an absolute path, or off"):
        cache.root({"EWAN_CACHE": "here"})


def test_the_instrument_is_what_was_measured(host: HostCalibration) -> None:
    found = calibrations.instrument_of(host)
    assert found.stack_ns == 12_000 and found.clock_ppb >= abs(host.timers.clock.against_raw_ppb)


def test_the_page_of_a_host_has_its_figures(host: HostCalibration, tmp_path: Path) -> None:
    made = page.write(tmp_path, *page.of_host(host))
    text = made.read_text()
    for title in ("The envelope of this host", "Configured and measured delay", "Spacing before and behind the rate"):
        assert title in text
    assert "this kernel lacks netem" in text and "<script" not in text
    assert {each.stem for each in (tmp_path / "figures").glob("*.svg")} >= {"envelope", "link-rates", "host-lateness"}


def test_the_page_of_a_lab_marks_its_links_in_the_envelope(
    certificate: Certificate,
    host: HostCalibration,
    tmp_path: Path,
) -> None:
    text = page.write(tmp_path, *page.of_lab(certificate, plan(), host)).read_text()
    assert "Circles: links of this lab" in text and "stack path" in text and "not decidable" in text
    without = page.write(tmp_path, *page.of_lab(certificate, plan(), None)).read_text()
    assert "Circles" not in without


def test_a_certificate_is_of_its_published_schema(certificate: Certificate) -> None:
    published = Path(__file__).resolve().parents[2] / "docs/reference/certificate.schema.json"
    assert published.read_text() == certificate_schema(), "ewan docs writes it"
    schema = orjson.loads(published.read_bytes())
    jsonschema.Draft202012Validator.check_schema(schema)
    document = orjson.loads(to_json(certificate))
    jsonschema.validate(document, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**document, "more": 1}, schema)


def readings(place: Path, **changes: object) -> Path:
    reading = {
        "link": "core",
        "direction": "forward",
        "quantity": "delay p50",
        "unit": "ns",
        "value": 50_015_000,
        "uncertainty": 20,
        **changes,
    }
    file = place / "readings.json"
    file.write_bytes(orjson.dumps({"format": "ewan-readings/1", "instrument": "a GtrcNET-1", "readings": [reading]}))
    return file


def test_another_instrument_stands_as_the_reference(certificate: Certificate, tmp_path: Path) -> None:
    file = readings(tmp_path)
    judged = reference.against(certificate, reference.read(file), file)
    row = next(each for each in judged.rows if (each.direction, each.quantity) == ("forward", "delay p50"))
    assert row.configured == 50_015_000 and row.verdict == "ok" and "a GtrcNET-1" in row.note
    assert row.uncertainty is not None and row.uncertainty.components["reference"] == 10
    file = readings(tmp_path, value=52_000_000)
    judged = reference.against(certificate, reference.read(file), file)
    assert not judged.passed and report.summary(judged).startswith("dumbbell NOT verified")


def test_a_program_may_print_the_readings(certificate: Certificate, tmp_path: Path) -> None:
    file = readings(tmp_path)
    driver = tmp_path / "driver"
    driver.write_text(f"#!/bin/sh\ncat {file}\n")
    driver.chmod(driver.stat().st_mode | stat.S_IXUSR)
    assert reference.read(driver) == reference.read(file)
    driver.write_text("#!/bin/sh\necho no answer at /dev/ttyUSB0 >&2\nexit 3\n")
    with pytest.raises(UserError, match="driver: ended with status 3: no answer at /dev/ttyUSB0"):
        reference.read(driver)


@pytest.mark.parametrize(
    "changes, says",
    [
        ({"quantity": "delay"}, '"delay" of core forward: no such row, it has '),
        ({"link": "cor"}, "there is no cor forward"),
        ({"unit": "ms"}, 'unit "ms": write it in ns'),
        ({"uncertainty": "20"}, "uncertainty"),
        ({"more": 1}, "more"),
    ],
)
def test_readings_that_fit_no_row_are_refused(
    certificate: Certificate,
    tmp_path: Path,
    changes: dict[str, object],
    says: str,
) -> None:
    file = readings(tmp_path, **changes)
    with pytest.raises(UserError, match=says) as refused:
        reference.against(certificate, reference.read(file), file)
    assert "\n" not in str(refused.value)


def test_ends_of_a_path_are_nodes_or_namespaces_with_an_address() -> None:
    nodes = {"left1": ("/run/netns/ewan-a-left1", "10.64.0.1")}
    assert path.end_of("left1", nodes).endpoint == Endpoint("/run/netns/ewan-a-left1", "10.64.0.1")
    assert path.end_of("@127.0.0.1", {}).netns == path.OWN
    for text, says in (
        ("left2", r"write a node \(left1\), or NETNS@ADDRESS"),
        ("@10.0.0", "is no IP address"),
        ("nothere@10.0.0.1", "no network namespace nothere"),
        ("../x@10.0.0.1", "no network namespace"),
    ):
        with pytest.raises(UserError, match=says):
            path.end_of(text, nodes)


def test_runs_of_losses_are_held_against_independent_ones() -> None:
    independent = [(1, 900), (2, 90), (3, 9), (4, 1)]
    statistic, degrees = accuracy.run_lengths_chi_square(independent, 0.1)
    assert degrees == 2 and statistic < accuracy.chi_square_limit(degrees)
    bursty = [(1, 500), (2, 300), (3, 200)]
    statistic, degrees = accuracy.run_lengths_chi_square(bursty, 0.1)
    assert statistic > accuracy.chi_square_limit(degrees)
    assert accuracy.run_lengths_chi_square([], 0.1) == (0.0, 0)


@pytest.mark.parametrize("degrees, limit", [(1, 6.63), (2, 9.21), (10, 23.21)])
def test_the_limit_of_chi_square_is_that_of_the_tables(degrees: int, limit: float) -> None:
    assert accuracy.chi_square_limit(degrees) == pytest.approx(limit, rel=0.03)


def test_a_lab_with_quantities_that_were_not_measured_is_partly_verified_and_the_reason_is_shown(
    certificate: Certificate,
) -> None:
    first, *others = certificate.rows
    missing = replace(first, verdict="not measured", measured=None, note="above this host's reach")
    partly = replace(certificate, rows=(missing, *others))
    assert "verified:" in report.summary(certificate) and "partly" not in report.summary(certificate)
    assert report.summary(partly).startswith("dumbbell partly verified: ")
    assert report.reasons(partly)[0] == (f"not measured: {first.quantity}: above this host's reach")


def test_an_uncertainty_that_its_tolerance_has_room_for_is_marked(certificate: Certificate) -> None:
    row = next(each for each in certificate.rows if each.verdict == "ok" and each.tolerance)
    assert row.tolerance is not None
    inside = replace(row, error=0.0, uncertainty=Uncertainty({}, row.tolerance / 2))
    beyond = replace(row, error=0.0, uncertainty=Uncertainty({}, row.tolerance * 2))
    assert "†" not in report.cells(inside)[6] and "†" in report.cells(beyond)[6]
    assert report.legend(replace(certificate, rows=(inside,))) == ""
    assert report.legend(replace(certificate, rows=(beyond,))).startswith("† The tolerance has room")
