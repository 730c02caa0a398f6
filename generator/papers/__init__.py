"""The experiments of papers as targets: what each paper found, what is run to find it again, and the verdict."""
