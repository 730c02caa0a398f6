"""Exchange with other programs: a run of a scenario as input of network simulators (ns-2, ns-3). Pure but for files."""
