"""From the real answers of a dumbbell (fixtures: 100 Mbit/s, 50 ms, on a machine whose CPUs others used too) to a
certificate and back."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from ewan.calibration import certify, report, spinner
from ewan.calibration.tests.answers import stats_of
from ewan.calibration.tests.captured import FIXTURES, captured_certificate, read
from ewan.labs.base import documents
from ewan.labs.base.codec import replace
from ewan.labs.record import Certificate, host_facts, to_json
from ewan.labs.runtime.probe_documents import ProbeAnswer


@pytest.fixture
def certificate() -> Certificate:
    return captured_certificate()


def test_what_was_measured(certificate: Certificate) -> None:
    rows = {(row.direction, row.quantity): row for row in certificate.rows}
    for way in ("forward", "backward"):
        for quantity in ("delay p50", "rate", "loss", "queue limit", "release error p50"):
            assert rows[way, quantity].verdict == "ok", rows[way, quantity]
    rate = rows["forward", "rate"]
    assert rate.error is not None and abs(rate.error) < 1e-5 * 1e8
    assert certificate.passed


def test_one_row_outside_fails_the_certificate(certificate: Certificate) -> None:
    outside = replace(certificate.rows[0], verdict="outside")
    failed = replace(certificate, rows=(outside, *certificate.rows[1:]))
    assert not failed.passed
    assert orjson.loads(to_json(failed))["passed"] is False


def test_a_certificate_is_written_and_read(certificate: Certificate, tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    report.write(certificate, path)
    assert orjson.loads(path.read_bytes())["passed"] is True
    assert report.read(path) == certificate


def test_another_version_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "certificate.json"
    path.write_text('{"format": "ewan-certificate/0"}')
    with pytest.raises(ValueError, match=r"certificate\.json: format is 'ewan-certificate/0'"):
        report.read(path)


def test_the_table_is_text(certificate: Certificate) -> None:
    cells = {row[1:3]: row for row in map(report.cells, certificate.rows)}
    shown = ("100 Mbit/s", "100 Mbit/s", "+0.0000%", "0.0161%", "±100 kbit/s", "ok")
    assert cells["forward", "rate"][3:9] == shown
    assert cells["forward", "delay p50"][3] == "50.011 ms"
    assert cells["forward", "loss"][3:6] == ("0 %", "0 %", "+0 %")
    assert report.summary(certificate) == (
        "dumbbell verified: 17 of 19 measurements within tolerance, 2 not decidable (11.2 s)"
    ), "its CPU was shared"


def test_the_short_table_has_the_main_quantities_and_all_that_is_not_in_order(certificate: Certificate) -> None:
    rows = report.main_rows(certificate)
    assert [row[0] for row in rows[:3]] == ["rate", "base RTT", "TCP goodput"]
    assert rows[0] == ["rate", "core →", "100 Mbit/s", "100 Mbit/s", "±100 kbit/s", "ok"]
    assert [row[-1] for row in rows[3:]] == ["not decidable"] * 2


def test_this_host_has_facts() -> None:
    facts = host_facts({"ewan-node": "1"})
    assert facts.cpus > 0 and facts.memory_bytes > 0 and facts.versions["ewan-node"] == "1"


def test_counts_of_a_link_are_those_of_the_verification() -> None:
    stats = read("dumbbell.stats.json")
    nothing = spinner.facts([stats_of(stats["after"])], [stats_of(stats["after"])])["core forward"]
    assert (nothing.overrun_packets, nothing.gaps, nothing.gaps_ns, nothing.release_p99_ns) == (0, 0, 0, None)
    own = spinner.facts([stats_of(stats["before"])], [stats_of(stats["after"])])["core forward"]
    assert own.port == "packet" and own.gaps > 0
    assert own.release_p50_ns is not None and own.release_p50_ns < 20_000


def test_what_lies_between_two_readings_of_a_histogram() -> None:
    before, after = ((10, 5), (20, 1)), ((10, 5), (20, 4), (40, 1))
    between = spinner.HistogramClasses.between(before, after)
    assert between.counts == ((20, 3), (40, 1))
    assert [between.percentile(percent) for percent in (50, 75, 76, 100)] == [20, 20, 40, 40]
    assert spinner.HistogramClasses.between(after, after).percentile(50) is None


def test_of_many_rows_those_outside_are_never_put_together(certificate: Certificate) -> None:
    row = replace(certificate.rows[0], verdict="ok", note="")
    ok = [replace(row, link=f"l{number}") for number in range(100)]
    missing = [replace(each, verdict="not measured", note="no time") for each in ok[:10]]
    outside = [replace(each, verdict="outside", note=f"late {each.link}") for each in ok[:3]]
    drawn, notes = report.sheet(replace(certificate, rows=(*ok, *missing, *outside)))
    assert [line[7] for line in drawn] == ["ok", "outside", "outside", "outside", "not measured"]
    assert drawn[0][0].startswith("100, worst") and drawn[4][0].startswith("10")
    assert notes == ["late l0", "late l1", "late l2", "no time"]


def test_the_record_keeps_no_value_of_every_packet() -> None:
    streams = [
        stream
        for result in certify._recorded(documents.read(ProbeAnswer, FIXTURES / "dumbbell.answer.json"))["results"]
        for stream in result.get("streams", ())
    ]
    assert any("quantiles_ns" in stream for stream in streams)
    assert not [stream["name"] for stream in streams if {"delays_ns", "spacings_ns"} & stream.keys()]
