"""Learn a sparse-coding dictionary of a checkpoint's hidden states."""

