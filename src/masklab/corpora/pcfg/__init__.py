"""Sentences of a probabilistic context-free grammar (Liu, Xie, Li & Ma 2023, section 2 and appendix A.1).

`rules` draws grammars, `read` reads them, `sample` and `trees` draw sentences, `law` knows their exact law (`plan` and
`chart` are its parts).
"""

MEASURED = 4096  # test sentences that the entropy in the header is measured on


def generate(config, name: str, seed: int, law_seed: int | None = None) -> dict:
    """Tables of a `PcfgCorpus`, column `symbols` (see `masklab.symbols`).

    Sentences are independent draws at an address without the corpus's name. The header holds the resolved config and
    the seed of the grammar (`law_seed`, or `seed`), from which `law.of_header` makes the law; for a grammar from a
    file also its rules; and, of the first test sentences, `mean_length` and the mean entropy of a word given all
    others, in nats: `mlm_entropy` with a position drawn uniformly from each sentence, as in the paper, its standard
    error `mlm_entropy_se`, and `mlm_entropy_per_token` over all words alike.
    """
    import pyarrow as pa

    from masklab import symbols
    from masklab.corpora.pcfg.law import Law
    from masklab.corpora.pcfg.read import write_rules
    from masklab.corpora.pcfg.rules import draw_rules
    from masklab.corpora.pcfg.sample import Sampler, pad
    from masklab.jobs.progress import Progress

    law_seed = seed if law_seed is None else law_seed
    rules = draw_rules(config.grammar, law_seed)
    sampler = Sampler(rules, config.min_length, config.max_length)
    header = {"kind": "pcfg", "seed": law_seed, "config": config.model_dump(mode="json"), "nonterminals": rules.names}
    if config.grammar.file is not None:
        header["rules"] = write_rules(rules)
    columns = {}
    for split, count in (("train", config.sentences), ("valid", config.valid), ("test", config.test)):
        address = ("pcfg", config.grammar.seed, config.seed, split)
        blocks = sampler.draw(count, seed, *address, progress=Progress(f"{name} {split}", "sentences"))
        columns[split] = [symbols.column(*block) for block in blocks]
    words, lengths = pad(*symbols.rows(columns["test"][0][:MEASURED]))
    entropy = Law(rules).mlm_entropy(words, lengths)
    header |= {"mean_length": float(lengths.mean()), "mlm_entropy": entropy["per_sentence"],
              "mlm_entropy_se": entropy["per_sentence_se"], "mlm_entropy_per_token": entropy["per_token"]}  # fmt: skip
    return {
        split: symbols.with_header(pa.table({symbols.COLUMN: pa.chunked_array(parts)}), rules.words, **header)
        for split, parts in columns.items()
    }
