"""What tells that a lab stretches over several machines, for those who need know no more of it."""

MANIFEST = "ewan-cluster/1"
"""The format of such a lab's manifest, which has its machines and what each has of it."""
SHARES = "/run/ewan-shares"
"""Where each machine keeps what it has of labs; not where its own labs are."""
