"""Suites: sets of scenarios with common parameters; HSTTS, the High Speed Transport protocol Test Suite."""
