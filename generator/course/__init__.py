"""Teaching labs that check themselves: parameters of each student, truths computed by running, verdicts and hints."""
