"""Congestion controls that users add: their sources, and the modules that are built of them."""
