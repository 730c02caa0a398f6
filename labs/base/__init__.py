"""What every part stands on: quantities, files that are read with limits and written whole, words, signals, a cache."""
