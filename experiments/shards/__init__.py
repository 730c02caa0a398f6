"""Shards: a study's runs shared out over jobs of any scheduler, and collected into one experiment.

In: a scenario and the part of its runs that is meant. Out: results in the store, a record of each shard in the study's
directory, from which `ewan exp collect` makes an experiment.

`share.py` (pure) assigns runs to shards, and gives the further runs of the next round by a stop rule. A shard is an
experiment of temporary files until its execution ends; collecting is one that executes no runs."""
