"""Claims: sentences of a paper, or of your own, each with an effect, a region it should lie in, and its premises."""
