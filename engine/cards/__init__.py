"""Graphics cards: the CUDA back end, its decoder and graphs, and how a model is laid on one card, several, or one with the processor."""
