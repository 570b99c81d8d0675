"""Generate or read a corpus."""

from pathlib import Path

from _job import job

with job(snakemake):
    from masklab.config.schema import Config
    from masklab.corpora import generate
    from masklab.files import write_table

    params, name = snakemake.params.config, snakemake.wildcards.corpus
    corpus = Config(corpora={name: params["corpus"]}).corpora[name]
    for split, table in generate(corpus, name, params["seed"]).items():
        write_table(table, Path(snakemake.output[split]))
