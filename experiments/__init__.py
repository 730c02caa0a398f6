"""Experiments: the engine that runs scenarios, the store of results, shards of a study, workers on other machines."""
