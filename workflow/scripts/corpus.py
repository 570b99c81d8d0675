"""Generate or read a corpus."""

from contextlib import nullcontext
from pathlib import Path

from _job import device, job

with job(snakemake):
    from masklab.config import kinds
    from masklab.corpora import generate
    from masklab.corpora.own_splits import checked
    from masklab.files import write_table

    params, name, held = snakemake.params.config, snakemake.wildcards.corpus.partition("/")[0], nullcontext()
    corpus = kinds.find("corpora", params["corpus"]["kind"]).entity()(**params["corpus"])
    work = {key: params[key] for key in ("law_seed", "model") if key in params}
    if snakemake.params.state:  # long enough to be resumed
        from masklab.jobs.progress import Progress
        from masklab.jobs.state import done, locked

        held = locked(snakemake.params.state)
        work |= {"state_folder": snakemake.params.state}
    if "model" in params:  # drawn from a causal model
        work |= {"device": device(params["device"])}
        if trained := snakemake.input.get("model"):
            work |= {"model": Path(trained).parent / "model", "named": params["model"]}
    elif snakemake.params.state:
        work |= {"progress": Progress(f"corpus {name}", "bytes", folder=snakemake.params.state)}
    with held:
        for split, table in checked(corpus.kind, generate(corpus, name, params["seed"], **work)).items():
            write_table(table, Path(snakemake.output[split]))
        if snakemake.params.state:
            done(snakemake.params.state)
