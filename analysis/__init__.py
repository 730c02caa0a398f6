"""Analysis: run records → tables, plots, report. Nothing is here yet but the place."""
