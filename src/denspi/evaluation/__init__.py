"""How good and how fast: reading a given paragraph, by SQuAD's official metrics."""
