"""Generate or read a corpus."""

from contextlib import nullcontext
from pathlib import Path

from _job import device, job

with job(snakemake):
    from masklab.config.schema import entry
    from masklab.corpora import generate
    from masklab.files import write_table

    params, name, work = snakemake.params.config, snakemake.wildcards.corpus, {}
    corpus = entry("corpora", params["corpus"])
    held = nullcontext()
    if "model" in params:  # drawn from a causal model: long enough to be resumed
        from masklab.jobs.state import locked

        held = locked(snakemake.params.state)
        work = {"model": params["model"], "device": device(params["device"]), "state_folder": snakemake.params.state}
    with held:
        for split, table in generate(corpus, name, params["seed"], **work).items():
            write_table(table, Path(snakemake.output[split]))
