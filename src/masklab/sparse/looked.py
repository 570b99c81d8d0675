"""How much of a text the page of a dictionary looks at. Light: the plan reads it, which stands below `properties`."""

TOKENS = 100_000  # whose states are coded
SIZES = (0.25, 0.5, 1, 2)  # of the number of atoms, of each of which another dictionary is learned
ITERATIONS = 100  # at most, of these
