"""CSV that programs of a run leave in $EWAN_OUT becomes tables, with units; another file is reported and loses
nothing."""

from __future__ import annotations

import math
from pathlib import Path

import orjson
import polars as pl
import pytest

from ewan.generator import readers, records
from ewan.generator.readers import files, step_csv
from ewan.generator.tests import schedules
from ewan.labs.base.units import NS_PER_SECOND
from ewan.labs.record import own_tables, tables
from ewan.labs.record.schedule import Schedule

STARTED_NS = 2 * NS_PER_SECOND
T0_UNIX_NS = 1_700_000_000 * NS_PER_SECOND + 123_456_789


def read(text: str, t0_unix_ns: int | None = T0_UNIX_NS) -> own_tables.OwnTable:
    return step_csv.read(text.encode(), STARTED_NS, t0_unix_ns)


def test_units_stand_in_the_names_and_values_are_in_the_tables_units() -> None:
    table = read(
        "time (s),queue depth (packets),Rate (Mbit/s),memory (kB),wait (ms),load (%),state\n"
        "0.000000001,3,1.5,2,0.25,50,idle\n"
        "1.5,,2,1.5,7,51.5,\n"
    )
    assert table.frame.to_dicts() == [
        {
            "time_ns": STARTED_NS + 1,
            "queue_depth_packets": 3,
            "rate_bps": 1.5e6,
            "memory_bytes": 2000.0,
            "wait_ns": 250_000,
            "load": 50.0,
            "state": "idle",
        },
        {
            "time_ns": STARTED_NS + 1_500_000_000,
            "queue_depth_packets": None,
            "rate_bps": 2e6,
            "memory_bytes": 1500.0,
            "wait_ns": 7_000_000,
            "load": 51.5,
            "state": None,
        },
    ]
    assert table.units == {
        "time_ns": "ns",
        "queue_depth_packets": "packets",
        "rate_bps": "bit/s",
        "memory_bytes": "B",
        "wait_ns": "ns",
        "load": "%",
    }


def test_a_time_of_day_is_exact_to_the_nanosecond() -> None:
    table = read("unix time (s)\n1700000000.123456790\n1700000001.1\n-0.5\n1.7e9\n")
    assert table.frame["time_ns"].to_list() == [
        1,
        976_543_211,
        -500_000_000 - T0_UNIX_NS,
        -123_456_789,
    ]


def test_a_line_that_was_cut_short_is_left_out() -> None:
    assert read("a (s),b\n1,2\n3,").frame.height == 1
    assert read("a,b\n").frame.columns == ["a", "b"] and read("a,b\n").frame.is_empty()


def test_names_of_columns() -> None:
    assert read("RTT_ns (ns),Bytes (B),Café (%)\n1,2,3\n").frame.columns == ["rtt_ns", "bytes", "caf"]
    assert read("x (µs),y (furlongs)\n1,2\n").units == {"x_ns": "ns", "y": "furlongs"}
    assert math.isnan(read("x\nnan\n1.5\n").frame["x"][0])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "is empty"),
        ("time (s)", "is empty"),
        ("time (s),depth (packets)\n1,many\n", "column 'depth (packets)': 'many' is no number of packets"),
        ("time (s)\n12:30\n", "column 'time (s)': '12:30' is no number of s"),
        ("time (s)\n9999999999999\n", "is no number of s"),
        ("time\n1\n", "its unit is no time: write time (s)"),
        ("time (s),unix time (s)\n1,2\n", "another column 'time_ns'"),
        ("a (s),a (ms)\n1,2\n", "another column 'a_ns'"),
        ("node,x\n1,2\n", "another column 'node'"),
        ("a,,c\n1,2,3\n", "column 2 has no name"),
        ("a,b\n1,2,3\n", "is no CSV: a line has more fields than the first"),
        (",".join(f"c{number}" for number in range(300)) + "\n", "has 300 columns: write at most 256"),
    ],
)
def test_what_is_no_table_is_said_in_one_line(text: str, says: str) -> None:
    with pytest.raises(ValueError) as error:
        read(text)
    assert says in str(error.value) and "\n" not in str(error.value)


def test_without_the_time_of_t0_a_time_of_day_means_nothing() -> None:
    with pytest.raises(ValueError, match="did not record the time of day of T0"):
        read("unix time (s)\n1\n", None)


def run_with(directory: Path, *commands: tuple[str, str, dict[str, bytes]]) -> Schedule:
    """A run's directory after commands of these steps on these nodes left such files; its schedule."""
    entries, told = [], []
    for index, (step, node, left) in enumerate(commands):
        name = f"commands/{index + 1}-{node}"
        (directory / name).mkdir(parents=True)
        for file, content in left.items():
            (directory / name / file).write_bytes(content)
        entries.append({"argv": ["own"], "error": None, "started_ns": 0, "out": f"{name}.out", "files": name})
        told.append(schedules.command(index, step, node))
    (directory / "commands.json").write_bytes(orjson.dumps({"t0_unix_ns": T0_UNIX_NS, "commands": entries}))
    return schedules.schedule(commands=told)


def test_files_of_the_same_name_on_two_nodes_are_one_table(tmp_path: Path) -> None:
    schedule = run_with(
        tmp_path,
        ("watch", "left1", {"depth.csv": b"time (s),depth\n1,2\n", "note.txt": b"no table"}),
        ("watch", "left2", {"depth.csv": b"time (ms),depth\n1,2.5\n"}),
        ("other", "left2", {"depth.csv": b"depth (MB)\n1\n", "bad.csv": b"a,b\n1\n2,3,4\n"}),
    )
    assert records.collect(tmp_path, schedule) is None
    table = own_tables.read(tmp_path, "watch.depth")
    assert table.frame.rows() == [("left1", 1, 10**9, 2.0), ("left2", 2, 10**6, 2.5)]
    assert table.frame.columns == ["node", "command", "time_ns", "depth"] and table.units == {"time_ns": "ns"}
    assert own_tables.read(tmp_path, "other.depth").frame["depth_bytes"].to_list() == [1e6]
    assert sorted(path.name for path in (tmp_path / "own").iterdir()) == ["other.depth.parquet", "watch.depth.parquet"]
    (problem,) = readers.problems(tmp_path)
    assert problem.startswith("bad.csv in left2 (step other): is no CSV")
    assert tables.read(tmp_path, "readings").filter(pl.col("problem").is_null()).height == 3


def test_units_that_differ_are_not_mixed(tmp_path: Path) -> None:
    left = [("a", f"n{number}", {"x.csv": f"load ({unit})\n1\n".encode()}) for number, unit in enumerate("%W%")]
    found = readers.results(run_with(tmp_path, *left), tmp_path)
    assert found.own["a.x"].frame["node"].to_list() == ["n0", "n2"]
    assert found.tables["readings"]["problem"].to_list() == [
        None,
        "column 'load' has another unit than that of the commands before",
        None,
    ]


def test_only_plain_files_of_bounded_size_and_number_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = {f"f{number}.csv": b"a\n1\n" for number in range(4)}
    schedule = run_with(tmp_path, ("a", "n", {"big.csv": b"a\n" * 100, "sp ace.csv": b"a\n"}), ("b", "n", many))
    (tmp_path / "commands/1-n/link.csv").symlink_to("/dev/zero")
    (tmp_path / "commands/1-n/place.csv").mkdir()
    monkeypatch.setattr(files, "MOST_BYTES", 100)
    monkeypatch.setattr(files, "MOST_FILES", 3)
    problems = readers.results(schedule, tmp_path).tables["readings"].drop_nulls("problem").select("file", "problem")
    assert [file for file, _ in problems.rows()] == ["big.csv", "link.csv", "place.csv", "sp ace.csv", "f3.csv"]
    assert "write at most 3 files" in problems.rows()[-1][1]


def test_a_damaged_table_is_refused(tmp_path: Path) -> None:
    own_tables.write(tmp_path, "a.b", read("x\n1\n"))
    path = tmp_path / own_tables.path_of("a.b")
    assert own_tables.name_of("own/a.b.parquet") == "a.b" and own_tables.name_of("flows.parquet") is None
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ValueError, match="no whole table"):
        own_tables.read(tmp_path, "a.b")
