"""Experiments: a scenario's runs from reservation to archive, in either clock; resumed, repeated, compared.

In: scenarios, and the parts that `ewan/cli.py` gives. Out: directories below results/ (experiment.json says what is
there).
"""
