"""How the models are made: examples, losses, the loop, the stages of a run."""
