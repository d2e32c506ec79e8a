"""Words, word pieces, windows and answers: text with offsets, no models."""
