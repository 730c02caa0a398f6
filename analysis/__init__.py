"""Analysis: run records → tables, plots, report. The workloads bring the rest; here: bursts and their picture."""
