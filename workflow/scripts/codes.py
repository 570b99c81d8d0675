"""Code every token of a corpus under a dictionary."""

