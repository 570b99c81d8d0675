"""Train a tokenizer on a corpus, name the symbols of a symbolic one, or take a Hugging Face folder's."""

from pathlib import Path

from _job import job

with job(snakemake):
    import numpy as np

    from masklab.config.schema import TOKENIZERS
    from masklab.foreign_tokenizers import renumbered
    from masklab.rng import generator
    from masklab.subwords import train
    from masklab.symbols import read_header
    from masklab.texts import TextFile
    from masklab.tokenizers import save_tokenizer, symbol_tokenizer

    params, name = snakemake.params.config, snakemake.wildcards.tokenizer.partition("/")[0]
    config = TOKENIZERS[params["tokenizer"]["kind"]](**params["tokenizer"])
    if config.kind == "symbols":
        tokenizer = symbol_tokenizer(read_header(snakemake.input.train)["names"])
    elif config.kind == "folder":
        tokenizer, _ = renumbered(config.folder)
    else:
        texts = TextFile(snakemake.input.train)
        if config.sample and config.sample < len(texts):
            rows = generator(params["seed"], "tokenizer", name).choice(len(texts), config.sample, replace=False)
            texts = texts.take(np.sort(rows))
        chosen = config.model_dump(exclude={"corpus", "max_length", "sample"})
        tokenizer = train(texts, **chosen)
    save_tokenizer(tokenizer, Path(snakemake.output.tokenizer).parent, config.max_length)
