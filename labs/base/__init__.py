"""Every part stands on these modules: quantities, files read with limits and written whole, words, signals, a cache."""
