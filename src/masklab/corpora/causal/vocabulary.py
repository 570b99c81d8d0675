"""Which tokens of a causal model are the words of a corpus, and how its sentences begin and end."""

import numpy as np

from masklab.corpora.causal.restricted_model import Restricted, Rules
from masklab.errors import MaskLabError

BATCH = 256  # texts drawn together to count tokens


def rules_of(config, name: str, causal, tokenizer, rng) -> Rules:
    """The rules of a `CausalCorpus` for a model and its tokenizer; `rng` (torch) draws texts where tokens are counted.

    MaskLabError naming the key if the tokenizer has too few words, or no such token to stop at.
    """
    where, usable = f"corpora.{name}", usable_ids(causal, tokenizer)
    if len(usable) < config.vocabulary:
        raise MaskLabError(
            f"{where}.vocabulary: {config.vocabulary} words, but {config.causal} has {len(usable)} that are no special"
            " tokens"
        )
    start = _first(tokenizer.bos_token_id, causal.config.bos_token_id, tokenizer.eos_token_id)
    if start is None:
        raise MaskLabError(f"{where}.causal: {config.causal} has no token to begin a sentence with (bos or eos)")
    end = _first(tokenizer.eos_token_id, causal.config.eos_token_id)
    if config.stop == "eos" and end is None:
        raise MaskLabError(f"{where}.stop: {config.causal} has no end-of-sentence token; name a word, or 'none'")
    shared = {"start": start, "length": config.length, "temperature": config.temperature}
    if config.frequency == "sampled":
        free = Rules(ids=tuple(usable), end=end, last=None, shortest=1, **shared)
        usable = by_count(causal, free, config.counted, rng)
    ids = tuple(usable[: config.vocabulary])
    last = None
    if config.stop not in ("eos", "none"):
        token = tokenizer.convert_tokens_to_ids(config.stop)
        if token not in ids:
            raise MaskLabError(f"{where}.stop: {config.stop!r} is not among the {config.vocabulary} words")
        last = ids.index(token)
    return Rules(ids=ids, end=end if config.stop == "eos" else None, last=last, shortest=config.shortest, **shared)


def usable_ids(causal, tokenizer) -> list[int]:
    """Ids of all tokens but special ones, in the order of the vocabulary."""
    special = {*tokenizer.all_special_ids, *tokenizer.added_tokens_decoder}
    rows = causal.get_input_embeddings().weight.shape[0]  # may be more than there are tokens
    return [index for index in range(min(len(tokenizer), rows)) if index not in special]


def by_count(causal, rules: Rules, texts: int, rng) -> list[int]:
    """The ids of `rules` by how often they occur in `texts` texts of the model, most frequent first."""
    from masklab.corpora.causal.sample import sample

    counts, free = np.zeros(len(rules.ids), np.int64), Restricted(causal, rules)
    for start in range(0, texts, BATCH):
        words, lengths, _ = sample(free, min(BATCH, texts - start), rng)
        counts += np.bincount(words[np.arange(words.shape[1]) < lengths[:, None]], minlength=len(counts))
    return [rules.ids[at] for at in np.argsort(-counts, kind="stable")]


def _first(*ids):
    """The first id that there is; some models list several."""
    for each in ids:
        if each is not None:
            return int(each[0]) if isinstance(each, list | tuple) else int(each)
    return None
