"""Tasks A, B, C on a grammar's sentences: which non-terminal stands over the first words? (Liu et al. 2023, A.1)

y = argmax_s Pr(s | x_1 .. x_L) over all non-terminals, with L = 32, 16, 8. What Pr can mean is said in
`corpora.pcfg.span_scores`. The paper's is read as `marginal`: it conditions on the first words alone, which `outside`
does not, and it is a probability of s, which needs the prior that `inside` (the authors' code) leaves out.
"""

import numpy as np
import pyarrow as pa

from masklab import symbols
from masklab.corpora.pcfg.law import Law
from masklab.corpora.pcfg.rules import draw_rules
from masklab.corpora.pcfg.sample import sample
from masklab.corpora.pcfg.span_scores import span_scores
from masklab.errors import MaskLabError
from masklab.tasks import label_facts, majorities

ROUNDS = 100  # draws of sentences before giving up


def nonterminals(config, name: str, seed: int, law_seed: int | None = None):
    """Build a labels task of a `PcfgTask`; splits are Arrow tables of `symbols` (the whole sentence) and `label`.

    A label is the number of a non-terminal, `names` in the facts; chance is not 1 / labels: `majority` is the share
    of the most frequent label of each split, `seen` the number of labels in training. Sentences shorter than the
    span are drawn again, except where the span is the longest sentence: then it is the whole one, whatever its
    length. So are those without a label, no symbol being possible; `unlabelled` is their share.
    """
    law = Law(draw_rules(config.grammar, seed if law_seed is None else law_seed))
    longest = min(law.rules.longest() or config.max_length, config.max_length)
    limits = max(config.min_length, config.span if config.span < longest else 1), config.max_length
    splits, drawn, kept = {}, 0, 0
    for split, count in (("train", config.train), ("valid", config.valid), ("test", config.test)):
        parts, missing = [], count
        for k in range(ROUNDS):
            address = ("nonterminals", config.grammar.seed, config.seed, split, k)
            words, lengths = sample(law.rules, max(missing, 256), seed, *address,
                                    min_length=limits[0], max_length=limits[1])  # fmt: skip
            scores = span_scores(law, words, lengths, config.span, config.reading)
            labelled = np.flatnonzero(scores.any(1))
            drawn, kept = drawn + len(words), kept + len(labelled)
            labelled = labelled[:missing]
            parts.append(_table(words[labelled], lengths[labelled], scores[labelled].argmax(1)))
            missing -= len(labelled)
            if not missing:
                break
        else:
            raise MaskLabError(
                f"tasks.{name}.span: only {count - missing} of {count} sentences had a symbol over their first"
                f" {config.span} words"
            )
        splits[split] = symbols.with_header(pa.concat_tables(parts), law.rules.words)
    facts = label_facts(splits, law.rules.names, False, "accuracy") | {
        "span": config.span,
        "reading": config.reading,
        "seen": len(np.unique(splits["train"]["label"])),
        "majority": majorities(splits),
        "unlabelled": 1 - kept / drawn,
    }
    return splits, facts


def _table(words, lengths, labels):
    values = words[np.arange(words.shape[1]) < lengths[:, None]]
    return pa.table({symbols.COLUMN: symbols.column(values, lengths), "label": labels.astype(np.int64)})
