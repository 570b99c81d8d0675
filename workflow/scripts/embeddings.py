"""Train word embeddings on a corpus's training tokens."""

from pathlib import Path

from _job import job

with job(snakemake):
    import numpy as np

    from masklab.config.schema import Embeddings
    from masklab.embeddings import train
    from masklab.files import atomic, read_json, write_json
    from masklab.tokens import TokenStore

    params, name = snakemake.params.config, snakemake.wildcards.embeddings
    folder = Path(snakemake.input.tokens).parent
    vocab_size = read_json(snakemake.input.tokens)["vocab_size"]
    vectors, facts = train(
        TokenStore(folder, "train"), vocab_size, Embeddings(**params["embeddings"]), name, params["seed"]
    )
    with atomic(snakemake.output.vectors) as temporary, open(temporary, "wb") as file:
        np.save(file, vectors)
    write_json(facts, snakemake.output.facts)
