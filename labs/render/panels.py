"""The dashboard of a lab's links, as Grafana reads it.

In: nothing; its variables (lab, link, direction) are chosen in Grafana's page. Out: a dictionary in Grafana's schema
39. The metrics are those of `ewan-node metrics` (emulator/node/src/metrics/text.rs), and
docs/how-to/labs/dashboards.md lists them.
"""

from __future__ import annotations

from typing import NamedTuple

from ewan.labs.base.codec import JsonValue

UID = "ewan-links"
SOURCE = {"type": "prometheus", "uid": "ewan-prometheus"}
SCHEMA = 39
WIDTH, HEIGHT = 12, 8

OF_LAB = 'lab=~"$lab"'
OF_LINK = f'{OF_LAB},link=~"$link"'
OF_WAY = f'{OF_LINK},direction=~"$direction"'
WAY = "{{link}} {{direction}}"
# The window of rate(): Grafana chooses it from the time range shown and the interval between scrapes.
WINDOW = "[$__rate_interval]"


class Query(NamedTuple):
    """One line, or one for each label value, in a panel: a PromQL expression and Grafana's template of its legend."""

    expression: str
    legend: str
    limit: bool = False
    """A bound, not a measurement: drawn dashed."""


class Panel(NamedTuple):
    """One panel of the dashboard; `kind` is Grafana's type of a panel."""

    title: str
    unit: str
    """Grafana's id of a unit."""
    description: str
    queries: tuple[Query, ...]
    kind: str = "timeseries"


def _rate(metric: str, labels: str = OF_WAY) -> str:
    return f"rate({metric}{{{labels}}}{WINDOW})"


def _lateness(quantile: float) -> Query:
    buckets = f"sum by (le, lab, link, direction) ({_rate('ewan_link_lateness_seconds_bucket')})"
    return Query(f"histogram_quantile({quantile}, {buckets})", f"{WAY} p{100 * quantile:.0f}")


LIMIT = "limit"
PANELS = (
    Panel(
        "Links that answer",
        "percentunit",
        "Share of the links whose emulator answers. Below 100 %, docker logs of the missing emulator says why.",
        (Query(f"avg(ewan_up{{{OF_LINK}}})", "links that answer"),),
        kind="stat",
    ),
    Panel(
        "Time the spinners lost",
        "percentunit",
        "Share of time for which a spinner was not on its CPU. Packets are late then.",
        (Query(f"max(rate(ewan_spinner_gap_seconds_sum{{{OF_LAB}}}{WINDOW}))", "worst spinner"),),
        kind="stat",
    ),
    Panel(
        "Rate out",
        "bps",
        "What leaves the link, as its framing counts (by default with Ethernet header, FCS, preamble and gap). Dashed: "
        "the rate as it is set now.",
        (
            Query(f"8 * {_rate('ewan_link_out_bytes_total')}", WAY),
            Query(f"8 * ewan_link_rate_bytes_per_second{{{OF_WAY}}}", f"{WAY} {LIMIT}", limit=True),
        ),
    ),
    Panel(
        "Rate in",
        "bps",
        "What comes to the link, before losses and its queue. Links of the kernel's parts do not tell it.",
        (Query(f"8 * {_rate('ewan_link_in_bytes_total')}", WAY),),
    ),
    Panel(
        "Utilisation",
        "percentunit",
        "Rate out as a share of the link's rate.",
        (Query(f"{_rate('ewan_link_out_bytes_total')} / ewan_link_rate_bytes_per_second{{{OF_WAY}}}", WAY),),
    ),
    Panel(
        "Packets out",
        "pps",
        "Packets that leave the link.",
        (Query(_rate("ewan_link_out_packets_total"), WAY),),
    ),
    Panel(
        "Queue, bytes",
        "bytes",
        "What waits at the instant of each scrape: the course between two of them is not seen here (ewan lab watch "
        "shows "
        "it). Dashed: the limit, where it counts bytes.",
        (
            Query(f"ewan_link_queue_bytes{{{OF_WAY}}}", WAY),
            Query(f"ewan_link_queue_limit_bytes{{{OF_WAY}}}", f"{WAY} {LIMIT}", limit=True),
        ),
    ),
    Panel(
        "Queue, packets",
        "short",
        "The same in packets. Dashed: the limit, where it counts packets.",
        (
            Query(f"ewan_link_queue_packets{{{OF_WAY}}}", WAY),
            Query(f"ewan_link_queue_limit_packets{{{OF_WAY}}}", f"{WAY} {LIMIT}", limit=True),
        ),
    ),
    Panel(
        "Drops by cause",
        "pps",
        "loss: the loss model; blackhole: too long for a black hole; policed: the policer; queue_full: the queue's "
        "limit; aqm: its discipline; ack_filtered: a later ACK took its place; store_full: the link had no memory "
        "left. Links of the kernel's parts: queue (limit or discipline), netem (loss, or no room in its delay line).",
        (
            Query(
                f"sum by (lab, link, direction, cause) ({_rate('ewan_link_dropped_packets_total')})",
                f"{WAY} {{{{cause}}}}",
            ),
        ),
    ),
    Panel(
        "Lateness",
        "s",
        "How much later than due packets left the link: median and 99th percentile of the window. User links.",
        (_lateness(0.5), _lateness(0.99)),
    ),
    Panel(
        "Packets under way",
        "short",
        "In the delay line.",
        (Query(f"ewan_link_delay_line_packets{{{OF_WAY}}}", WAY),),
    ),
    Panel(
        "Drops beside the model",
        "pps",
        "Packets lost between the kernel and the link's emulator. Anything but 0 means that the link does not do what "
        "its description says: the machine is too slow for this load.",
        (
            Query(
                f"sum by (lab, link, interface, cause) ({_rate('ewan_port_dropped_packets_total', OF_LINK)})",
                "{{link}} {{interface}} {{cause}}",
            ),
        ),
    ),
    Panel(
        "Spinners at work",
        "percentunit",
        "Share of its CPU that a spinner spent on packets; the rest of the time it waits for them.",
        (Query(_rate("ewan_spinner_busy_seconds_total", OF_LAB), "spinner {{spinner}}"),),
    ),
    Panel(
        "Longest time that a spinner lost",
        "s",
        "Since the lab came up.",
        (Query(f"ewan_spinner_gap_max_seconds{{{OF_LAB}}}", "spinner {{spinner}}"),),
    ),
)


def dashboard() -> dict[str, JsonValue]:
    """The whole dashboard."""
    return {
        "uid": UID,
        "title": "ewan: links of a lab",
        "tags": ["ewan"],
        "schemaVersion": SCHEMA,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "5s",
        "time": {"from": "now-5m", "to": "now"},
        "timezone": "browser",
        "annotations": {"list": []},
        "templating": {
            "list": [
                _variable("lab", "ewan_up"),
                _variable("link", f"ewan_up{{{OF_LAB}}}"),
                _variable("direction", f"ewan_link_out_bytes_total{{{OF_LINK}}}"),
            ]
        },
        "panels": [_panel(number, panel, place) for number, (panel, place) in enumerate(_placed(), 1)],
    }


def _placed() -> list[tuple[Panel, dict[str, int]]]:
    """Single values in a row of their own on top, then pictures, two in a row."""
    values = [panel for panel in PANELS if panel.kind == "stat"]
    pictures = [panel for panel in PANELS if panel.kind != "stat"]
    top = HEIGHT // 2
    placed = [(panel, {"x": WIDTH * n, "y": 0, "w": WIDTH, "h": top}) for n, panel in enumerate(values)]
    for number, panel in enumerate(pictures):
        row, column = divmod(number, 2)
        placed.append((panel, {"x": WIDTH * column, "y": top + HEIGHT * row, "w": WIDTH, "h": HEIGHT}))
    return placed


def _panel(number: int, panel: Panel, place: dict[str, int]) -> dict[str, JsonValue]:
    """A panel in Grafana's JSON; `place` is its rectangle in the dashboard's grid."""
    dashed: dict[str, JsonValue] = {
        "matcher": {"id": "byRegexp", "options": f".* {LIMIT}$"},
        "properties": [
            {"id": "custom.lineStyle", "value": {"fill": "dash", "dash": [8, 8]}},
            {"id": "custom.fillOpacity", "value": 0},
        ],
    }
    drawn: dict[str, JsonValue] = {"unit": panel.unit, "min": 0}
    options: dict[str, JsonValue]
    if panel.kind == "stat":
        options = {"reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False}, "graphMode": "area"}
    else:
        drawn["custom"] = {"drawStyle": "line", "lineWidth": 1, "fillOpacity": 10, "showPoints": "never"}
        options = {
            "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
    return {
        "id": number,
        "type": panel.kind,
        "title": panel.title,
        "description": panel.description,
        "datasource": SOURCE,
        "gridPos": place,
        "fieldConfig": {
            "defaults": drawn,
            "overrides": [dashed] if any(query.limit for query in panel.queries) else [],
        },
        "options": options,
        "targets": [
            {
                "refId": chr(ord("A") + index),
                "datasource": SOURCE,
                "editorMode": "code",
                "expr": query.expression,
                "legendFormat": query.legend,
                "range": True,
            }
            for index, query in enumerate(panel.queries)
        ],
    }


def _variable(name: str, series: str) -> dict[str, JsonValue]:
    """A list to choose from, of the values that a label has in a metric; all of them at first."""
    return {
        "name": name,
        "label": name,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": f"label_values({series}, {name})", "refId": f"values-of-{name}"},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"selected": True, "text": ["All"], "value": ["$__all"]},
    }
