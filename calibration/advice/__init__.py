"""What a path is, measured from its two ends: RTT, capacity, buffer, loss, cross traffic, each with its uncertainty."""
