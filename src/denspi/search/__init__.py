"""From vectors to answers: scoring (pure), and later strategies and the searcher."""
