"""A generated English-like language: a feature grammar with a sampler, pairs and tasks.

`generate` makes the corpus; see `pairs.minimal_pairs` and `labelled_tasks.labelled` for what can be asked about it.
"""

from masklab import rng


def generate(config, name: str, seed: int) -> dict:
    """{split: pyarrow table with column `text`} of an `EnglishCorpus`.

    Sentences are independent draws of the grammar; a sentence of `valid` or `test` occurs
    in no other split (short ones may occur twice in one).
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    from masklab.corpora.english.sample import sentences

    tables, earlier = {}, None
    for split, count in (("train", config.sentences), ("valid", config.valid), ("test", config.test)):
        random = rng.generator(seed, name, "sentences", split)
        texts = sentences(count, random)
        while earlier is not None:
            fresh = texts.filter(pc.invert(pc.is_in(texts, value_set=earlier)))
            if len(fresh) >= count:
                texts = fresh[:count]
                break
            texts = pa.concat_arrays([fresh, sentences(count - len(fresh) + 16, random)])
        earlier = texts if earlier is None else pa.concat_arrays([earlier, texts])
        tables[split] = pa.table({"text": texts})
    return tables
