"""Features of an example (words, phrases, sentences), what they are replaced by, and how much a model minds."""
