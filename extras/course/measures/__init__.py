"""Measures: functions of runs that truths may call, a module for each topic (docs/contribute/adding/course-lab.md)."""
