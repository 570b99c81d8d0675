"""Train word embeddings on a corpus's training tokens."""

from pathlib import Path

from _job import job

with job(snakemake):
    import numpy as np

    from masklab.config.schema import Embeddings
    from masklab.embeddings import train
    from masklab.files import atomic, read_json, write_json
    from masklab.jobs.midway import Midway
    from masklab.jobs.progress import Progress
    from masklab.jobs.state import done, locked
    from masklab.tokens import TokenStore

    params, name = snakemake.params.config, snakemake.wildcards.embeddings
    config, about = Embeddings(**params["embeddings"]), read_json(snakemake.input.tokens)
    store = TokenStore(Path(snakemake.input.tokens).parent, "train")
    updates = config.epochs * len(store.ids)
    with locked(snakemake.params.state) as held:
        progress = Progress(f"embeddings {name}", "tokens", folder=held)

        def told(share):
            progress(round(share * updates), updates)

        made_of = {"params": params, "tokens": about}
        midway = Midway(name, told, held / "training.safetensors", made_of)
        vectors, facts = train(store, about["vocab_size"], config, name, params["seed"], midway)
        with atomic(snakemake.output.vectors) as temporary, open(temporary, "wb") as file:
            np.save(file, vectors)
        write_json(facts, snakemake.output.facts)
        done(held)
