"""Two experiments beside each other: the differences of their descriptions, their circumstances and their results.

`descriptions`, `certificates` and `results` are pure, `both` has all of them, `page` writes the page, `cli` is the
command; `overlaid` is both as one experiment, for figures."""
