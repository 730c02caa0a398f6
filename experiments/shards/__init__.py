"""Shards: a study's runs shared out over jobs of any scheduler, and collected into one experiment.

In: a scenario and which part of its runs is meant. Out: results in the store, a record of each shard in the study's
directory, from which `ewan exp collect` makes an experiment.

`share.py` (pure) says which runs are of which shard, and what a stop rule wants of the next round. A shard is an
experiment of temporary files until its execution ends; collecting is one in which nobody executes runs.
"""
