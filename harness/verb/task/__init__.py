"""From what is stored of a side to its metrics, one file for what outputs of a kind need."""
