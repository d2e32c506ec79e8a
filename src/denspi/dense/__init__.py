"""Vectors from text: the phrase model, its runtimes, the reader."""
