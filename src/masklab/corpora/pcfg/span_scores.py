"""What Pr(s | x_1 .. x_L) can mean: scores of the non-terminals over the first words of a sentence.

Liu et al. (2023), appendix A.1, label a sentence with y = argmax_s Pr(s | x_1 .. x_L). The first L words need not be
those below any node of the tree that the sentence was drawn with: what is scored is the event that they are, for a
symbol s. No two nodes have the same words in Chomsky normal form, so that these events exclude each other. Readings:

- `inside`: Pr(x_1 .. x_L | s), no prior on s. The authors' code.
- `marginal`: Pr(s) Pr(x_1 .. x_L | s), proportional to Pr(s | x_1 .. x_L, these are the words of one node). Pr(s) is
  the expected number of nodes s that begin where the sentence begins, the root aside; over a whole sentence the node
  is the root, and Pr(s) its probability.
- `outside`: Pr(x_1 .. x_L are the words of a node s | x_1 .. x_T): inside x outside score, the rest being known too.
"""

import numpy as np


def left_prior(rules) -> np.ndarray:
    """Expected number of nodes with each symbol, the root aside, on the left edge of a tree, [n]."""
    step = np.zeros((len(rules), len(rules)))
    np.add.at(step, (rules.binary[:, 0], rules.binary[:, 1]), rules.binary_probabilities)
    return np.linalg.solve(np.eye(len(rules)) - step.T, rules.start @ step)


def span_scores(law, sequences, lengths, span: int, reading: str) -> np.ndarray:
    """Proportional to Pr(s | the first `span` words) in a reading, [N, n]; the whole of shorter sentences.

    All 0 where no symbol can derive these words (or, for `outside`, where no tree has a node over them).
    """
    lengths = np.asarray(lengths, np.int64)
    widths, whole = np.minimum(span, lengths), lengths <= span
    if reading == "outside":
        scores = np.empty((len(lengths), len(law.rules)))
        scores[~whole] = law.prefix_posterior(sequences[~whole], lengths[~whole], span)
        scores[whole] = law.root_inside(sequences[whole], lengths[whole]) * law.rules.start
        return scores
    scores = law.root_inside(sequences, widths)
    if reading == "marginal":
        scores *= np.where(whole[:, None], law.rules.start, left_prior(law.rules))
    return scores
