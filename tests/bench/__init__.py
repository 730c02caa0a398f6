"""`make bench`: measures this machine's performance, each value beside a reference in the same run."""
