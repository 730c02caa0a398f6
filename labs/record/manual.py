"""The page about metrics, series and tables, made from their vocabularies and from the columns of tables.

In: nothing. Out: Markdown, as docs/reference/metrics.md has it.
"""

from __future__ import annotations

from collections.abc import Iterable

from ewan.labs.record.columns import COLUMNS
from ewan.labs.record.metrics import GROUPS, METRICS
from ewan.labs.record.series import SAMPLES, SERIES, Samples, Series
from ewan.labs.record.tables import unit

_INTRODUCTION = """# Metrics and tables

Made from `labs/record/metrics.py`, `labs/record/series.py` and `labs/record/columns.py` (`ewan docs`); do not edit.

Each run of a scenario has metrics: in `summary.json`, in the report, and by their names in a scenario's `metrics`,
`compare`, `stop` and `beside`. Load flows are those of role `load`; a run does not have a metric that its flows do not
give. A share is shown as a percentage.

Runs leave tables (`runs/*/*.parquet`) that the metrics are computed from, and that other programs can read. A column's
unit is the last part of its name and stands in the file, too. Times are nanoseconds from T0, the common start of all
flows of a run; sizes are payload bytes unless a column says otherwise; bytes of links are counted as the link's framing
counts them. A value that is not known is null.
"""

_MORE = (
    "Columns `{prefix}NAME` are there in runs with a congestion control that has them. A run of the virtual clock "
    "has one for each variable of a control whose layout its program gives, and words for the values of an enumeration."
)
_PLAIN_LINK = "Where the load's bottleneck is a plain link, which counts nothing, a run does not have: {names}.\n"


def _listed(title: str, about: str, entries: Iterable[Series | Samples]) -> str:
    lines = [
        f"## {title}",
        "",
        about,
        "",
        f"| {title.lower()} | of | unit | table | meaning |",
        "|---|---|---|---|---|",
    ]
    lines += [f"| `{each.name}` | {each.whose} | {each.unit} | `{each.table}` | {each.meaning} |" for each in entries]
    return "\n".join([*lines, ""])


def markdown() -> str:
    """The whole page."""
    parts = [_INTRODUCTION]
    for group, names in GROUPS.items():
        lines = [f"## {group}", "", "| metric | unit | better | meaning |", "|---|---|---|---|"]
        for name in names:
            metric = METRICS[name]
            only = f" (steps with `{metric.step}`)" if metric.step else " (`capture`)" if metric.captured else ""
            lines.append(f"| `{name}` | {metric.unit} | {metric.better or ''} | {metric.meaning}{only} |")
        parts.append("\n".join([*lines, ""]))
    plain = ", ".join(f"`{name}`" for name, metric in METRICS.items() if metric.emulated)
    parts.append(_PLAIN_LINK.format(names=plain))
    series = "What a figure draws `over time` (docs/how-to/experiments/figures.md)."
    parts.append(_listed("Series", series, SERIES.values()))
    parts.append(_listed("Samples", "What has a distribution: `cdf of`, `ccdf of`, `box of`.", SAMPLES.values()))
    for name, table in COLUMNS.items():
        lines = [
            f"## Table `{name}`",
            "",
            f"A row: {table.meaning}.",
            "",
            "| column | unit | meaning |",
            "|---|---|---|",
        ]
        lines += [
            f"| `{column}` | {unit(column)} | {each.meaning} |"
            for column, each in {**table.columns, **table.more}.items()
        ]
        if table.more:
            lines += ["", _MORE.format(prefix=table.prefix)]
        parts.append("\n".join([*lines, ""]))
    return "\n".join(parts)
