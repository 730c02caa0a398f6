"""Measures: functions of runs that truths may call, a module for each topic (docs/adding/course-lab.md)."""
