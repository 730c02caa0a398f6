"""Two experiments beside each other: what differs in their descriptions, their circumstances and their results.

`descriptions` and `results` are pure, `page` writes the page, `cli` is the command.
"""
