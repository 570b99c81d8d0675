"""Pre-training: the loop, what a run leaves on disk, and the processes that it takes."""
