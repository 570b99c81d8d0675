"""Code those tokens of a corpus under a dictionary that some recipes will hide."""

from pathlib import Path

from _job import job

with job(snakemake):
    from _codes import write
    from masklab.files import read_json
    from masklab.jobs.progress import Progress
    from masklab.training.masked_tokens import masked_tokens

    def hidden(store):
        params, vocab = snakemake.params.config, read_json(snakemake.input.tokens)["vocab_size"]
        files = {"tokens": Path(snakemake.input.tokens).parent, "tokenizer": Path(snakemake.input.tokenizer).parent}
        told = Progress(f"masks {snakemake.wildcards.dictionary}", "updates", folder=snakemake.params.state)
        return masked_tokens(params["masks"], params["seed"], store, {"vocab_size": vocab, **files}, told)

    write(snakemake, hidden)
