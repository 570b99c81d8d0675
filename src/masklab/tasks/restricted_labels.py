"""A task of texts in the words of a causal corpus, so that models that read the corpus can be probed on it.

The paper takes QNLI and SST-2 for models of OPT's sentences over 2000 words and at most 24 tokens, and does not say how
their texts were brought into that form (Liu et al. 2023, section 2.2, A.1).
"""

import logging
from pathlib import Path

import numpy as np
import pyarrow as pa

from masklab import symbols
from masklab.corpora.causal.loading import found, load_tokenizer
from masklab.errors import MaskLabError
from masklab.files import read_json, read_table
from masklab.tasks import label_facts
from masklab.tasks.encoding import longest_first

log = logging.getLogger("masklab")


def restricted_labels(config, name: str, seed: int, task=None, corpus=None):
    """Build a labels task: Arrow tables of `symbols` and `label`, and `domain` where the task of texts has it.

    task: folder of the task of texts; corpus: a Parquet file of the causal corpus, whose header holds words and rules.
    Texts are cut into the causal model's tokens; those that are no words are left out, or become the unknown token
    (`unknown`); the rest is cut to the length of the corpus, a pair's longer side first, and joined. Rows of which
    nothing remains are left out. task.json has, per split, `kept`: the share of tokens that are words, and `empty`:
    the rows left out.
    """
    facts = read_json(Path(task) / "task.json")
    if facts["kind"] != "labels":
        raise MaskLabError(f"tasks.{name}.task: {config.task!r} is not a labelled task")
    law = symbols.read_header(corpus)["law"]
    tokenizer, longest = load_tokenizer(found(law)), config.length or law["length"]
    numbers = {token: symbol for symbol, token in enumerate(law["ids"])}
    names = symbols.read_header(corpus)["names"]
    splits, kept, empty = {}, {}, {}
    for split in ("train", "valid", "test"):
        table = read_table(Path(task) / f"{split}.parquet")
        rows, kept[split] = mapped(table, tokenizer, numbers, longest, config.unknown)
        counts = np.array([len(row) for row in rows])
        empty[split] = int((counts == 0).sum())
        if empty[split] == len(rows):
            raise MaskLabError(f"tasks.{name}: no word of the {split} split of {config.task!r} is a word of the corpus")
        labels = table["label"].to_numpy()[counts > 0].astype(np.int64)
        column = symbols.column(np.concatenate([np.array(row, np.int64) for row in rows]), counts[counts > 0])
        own = pa.table({symbols.COLUMN: column, "label": labels})
        if "domain" in table.column_names:  # the two development sets of MNLI
            own = own.append_column("domain", table["domain"].filter(pa.array(counts > 0)))
        splits[split] = symbols.with_header(own, names)
        log.info(
            "%s: %s: %.0f%% of the tokens are words, %d rows have none", name, split, 100 * kept[split], empty[split]
        )
    of_labels = label_facts(splits, facts["names"], False, facts["metric"])
    return splits, of_labels | {"kept": kept, "empty": empty}


def mapped(table, tokenizer, numbers: dict[int, int], longest: int, unknown: str):
    """(symbols of each row of text_a, text_b; share of tokens that are words). `numbers`: token id -> symbol.

    The second text of a pair is read as it stands after the first and a space: many tokenizers tell a word that
    follows a space from one that does not.
    """
    first = table["text_a"].to_pylist()
    sides = [_tokens(tokenizer, first)]
    if table["text_b"].null_count < len(table):
        second = [text or "" for text in table["text_b"].to_pylist()]
        both = _tokens(tokenizer, [f"{a} {b}" for a, b in zip(first, second, strict=True)])
        sides.append([ids[len(a) :] for ids, a in zip(both, sides[0], strict=True)])
    words, tokens, rows = 0, 0, []
    for texts in zip(*sides, strict=True):
        known = [[numbers.get(token, symbols.UNKNOWN) for token in ids] for ids in texts]
        hits = [[symbol for symbol in part if symbol != symbols.UNKNOWN] for part in known]
        words, tokens = words + sum(map(len, hits)), tokens + sum(map(len, known))
        parts = hits if unknown == "drop" else known
        if len(parts) == 1:
            rows.append(parts[0][:longest])
        else:
            kept = longest_first(len(parts[0]), len(parts[1]), longest)
            rows.append(parts[0][: kept[0]] + parts[1][: kept[1]])
    return rows, words / max(tokens, 1)


def _tokens(tokenizer, texts):
    return tokenizer(texts, add_special_tokens=False, verbose=False)["input_ids"] if texts else []
