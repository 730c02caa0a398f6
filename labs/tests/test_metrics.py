"""The vocabulary of metrics and the columns of tables: complete, and the same everywhere they are written down."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ewan.labs.record import quantities
from ewan.labs.record.columns import COLUMNS
from ewan.labs.record.manual import markdown
from ewan.labs.record.metrics import AMBIGUOUS, GROUPS, METRICS, RANKED
from ewan.labs.record.tables import TABLES, UNITLESS, unit

ROOT = Path(__file__).resolve().parent.parent.parent
TCP_INFO = ROOT / "emulator/traffic/src/flows/records.rs"


def test_names_groups_and_ranks_are_one_each() -> None:
    assert sorted(name for names in GROUPS.values() for name in names) == sorted(METRICS)
    assert [METRICS[name].rank for name in RANKED] == list(range(1, len(RANKED) + 1)), "ranks are 1, 2, 3 …"


@pytest.mark.parametrize("name", METRICS)
def test_a_metric_says_what_it_is(name: str) -> None:
    metric = METRICS[name]
    assert metric.name == name == name.lower()
    assert metric.meaning and "|" not in metric.meaning and not metric.meaning.endswith(".")


def test_ambiguous_words_name_metrics_that_there_are() -> None:
    for said in AMBIGUOUS.values():
        assert set(re.split(", | or ", said)) <= METRICS.keys()


@pytest.mark.parametrize(
    ("table", "column"), [(name, column) for name, each in COLUMNS.items() for column in each.columns]
)
def test_a_column_says_what_it_is(table: str, column: str) -> None:
    meaning = COLUMNS[table].columns[column].meaning
    assert meaning and "|" not in meaning and not meaning.endswith(".")
    last = column.rsplit("_", 1)[-1]
    known = unit(column) or last == column or last in UNITLESS
    assert known, f"{table}.{column}: {last} is no unit of labs/record/tables.py"


def test_the_generator_records_what_the_tables_describe() -> None:
    """Each header of the generator's CSV files is that of a table, and each field of its records a column of flows."""
    text = TCP_INFO.read_text()
    headers = [re.sub(r"\\\s*", "", header) for header in re.findall(r'COLUMNS: &\'static str =\s*"([^"]*)"', text)]
    assert len(headers) == 5
    known = {name: ",".join(columns) for name, columns in TABLES.items()}
    for header in headers:
        nearest = max(TABLES, key=lambda name: len({*header.split(",")} & TABLES[name].keys()))
        other = sorted({*header.split(",")} ^ TABLES[nearest].keys())
        assert header in known.values(), f"records.rs and labs/record/columns.py differ in {nearest}: {other}"
    structures = [re.search(rf"pub struct {name} {{(.*?)^}}", text, re.DOTALL | re.MULTILINE) for name in RECORDS]
    fields = {field for each in structures if each for field in re.findall(r"^    pub (\w+):", each[1], re.MULTILINE)}
    assert len(fields) > 20
    # The port of a flow's half is gone when both halves are one record.
    missing = sorted(fields - {"udp", "port"} - TABLES["flows"].keys())
    assert not missing, f"records.rs has fields that labs/record/columns.py does not describe: {missing}"


RECORDS = ("Record", "UdpRecord")


def test_the_page_in_docs_is_current() -> None:
    assert (ROOT / "docs/reference/metrics.md").read_text() == markdown(), "ewan docs writes it"


@pytest.mark.parametrize(
    ("text", "kind", "name"),
    [
        ("steady goodput of cross", None, "cross"),
        ("mean goodput of source left1", "source", "left1"),
        ("mean goodput of flow forward 3", "flow", "forward 3"),
        ("fairness per flow of each step", "step", None),
        ("deviation of completion time of web", None, "web"),
    ],
)
def test_a_quantity_is_a_metric_and_whose(text: str, kind: str | None, name: str | None) -> None:
    found = quantities.parse(text)
    assert found.selection == quantities.Selection(kind, name)  # type: ignore[arg-type]
    assert str(found) == text


def test_a_metric_alone_is_the_loads() -> None:
    found = quantities.parse("deviation of completion time")
    assert found.selection is None and found.metric is METRICS["deviation of completion time"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("speed of cross", "unknown metric"),
        ("loss of cross", "write queue loss"),
        ("mean goodput of each", "of each what"),
        ("mean goodput of each node", "of each what"),
        ("mean goodput of left 1", "whose"),
        ("ping loss of flow a", "commands have no flow"),
        ("ping loss of each role", "commands have no role"),
        ("reverse goodput of cross", 'write "reverse goodput"'),
    ],
)
def test_what_is_no_quantity_is_refused_with_what_to_write(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        quantities.parse(text)
