"""Analysis: run records → metrics, figures, report, and files for other tools.

`load` reads an experiment's directory, `metrics` and `statistics` are pure, `summary` puts them together, `figures`
draws, `report` writes the page.
"""
