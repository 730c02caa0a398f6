"""Experiments: a scenario's runs from reservation to archive, in either clock; resumed, repeated, compared.

In: scenarios. Out: directories below results/; experiment.json names what is there.
"""
