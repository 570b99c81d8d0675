"""Train a causal language model on a text corpus; resumes a killed run."""

from pathlib import Path

from _job import device, job, saved_after

with job(snakemake):
    from masklab.config.schema import CausalModel
    from masklab.corpora.causal.training import train

    params = snakemake.params.config
    train(
        saved_after(CausalModel(**params["causal_model"]), snakemake),
        snakemake.wildcards.causal.partition("/")[0],
        params["seed"],
        Path(snakemake.input.tokens).parent,
        Path(snakemake.input.tokenizer).parent,
        Path(snakemake.output.manifest).parent / "model",
        Path(snakemake.params.state),
        device(params["device"]),
        snakemake.output.manifest,
    )
