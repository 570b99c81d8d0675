"""Generate or read a corpus."""

from contextlib import nullcontext
from pathlib import Path

from _job import device, job

with job(snakemake):
    from masklab.config import kinds
    from masklab.corpora import generate
    from masklab.files import write_table

    params, name, held = snakemake.params.config, snakemake.wildcards.corpus.partition("/")[0], nullcontext()
    corpus = kinds.find("corpora", params["corpus"]["kind"]).entity()(**params["corpus"])
    work = {key: params[key] for key in ("law_seed", "model") if key in params}
    if "model" in params:  # drawn from a causal model: long enough to be resumed
        from masklab.jobs.state import locked

        held = locked(snakemake.params.state)
        work |= {"device": device(params["device"]), "state_folder": snakemake.params.state}
        if trained := snakemake.input.get("model"):
            work |= {"model": Path(trained).parent / "model", "named": params["model"]}
    with held:
        for split, table in generate(corpus, name, params["seed"], **work).items():
            write_table(table, Path(snakemake.output[split]))
