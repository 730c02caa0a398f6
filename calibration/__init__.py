"""Calibration: decides whether a lab may be believed. `verify_lab` measures a lab against its plan, in either clock.

It waits for the routes first, and refuses a lab that does not find them. What a measurement must find follows from the
plan; probes are sent by one process that has its sockets in all nodes, so that both ends have one clock; the links' own
counters are read; the comparison is pure.
"""

from ewan.calibration.certify import BatchLab, LiveLab, verify_lab

__all__ = ["BatchLab", "LiveLab", "verify_lab"]
