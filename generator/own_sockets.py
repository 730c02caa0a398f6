"""The rows of link_flows that are of a command's own sockets. Pure.

In: the tables command_sockets and link_flows. Out: the sockets of one command, and those of which it is not known whose
they are; which rows of link_flows are of some of them."""

from __future__ import annotations

from collections.abc import Collection

import polars as pl

from ewan.labs.record.schedule import CountedTool

_OTHER = {"source": "destination", "destination": "source"}


def of_command(sockets: pl.DataFrame, command: int | None) -> pl.DataFrame:
    """The sockets of one command."""
    return sockets.filter(pl.col("command") == (-1 if command is None else command))


def unknown(sockets: pl.DataFrame, node: str) -> pl.DataFrame:
    """The sockets in a node of which it is not known which command had them."""
    return sockets.filter(pl.col("command").is_null() & (pl.col("node") == node))


def matching(counted: pl.DataFrame, sockets: pl.DataFrame, tool: CountedTool) -> pl.Series:
    """For each row of link_flows: whether it is of one of these sockets, which are at the end `tool.sockets`."""
    near = "source" if tool.sockets == "source" else "destination"
    far = _OTHER[near]
    names = {"address": near, "port": f"{near}_port", "peer": far, "peer_port": f"{far}_port"}
    known = sockets.select("protocol", *names).rename(names)
    words = known.columns
    pairs = known.filter(pl.col(f"{far}_port").is_not_null()).unique().with_columns(found=True)
    ports = known.filter(pl.col(f"{far}_port").is_null()).select("protocol", f"{near}_port").unique()
    rows = counted.select(words).join(pairs, on=words, how="left", maintain_order="left")
    rows = rows.join(ports.with_columns(all=True), on=ports.columns, how="left", maintain_order="left")
    return rows.select(pl.col("found").fill_null(False) | pl.col("all").fill_null(False)).to_series()


def stated(sockets: pl.DataFrame, ports: Collection[int]) -> int | None:
    """One of the ports that links sum up by, if a socket has it."""
    found = {*sockets["port"].to_list(), *sockets["peer_port"].drop_nulls().to_list()}
    return min(found & set(ports), default=None)
