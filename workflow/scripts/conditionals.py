"""Compute the exact conditionals of a corpus's test sequences."""

from pathlib import Path

from _job import device, job

with job(snakemake):
    import os

    from masklab.conditionals import write_conditionals
    from masklab.files import read_json
    from masklab.jobs.progress import Progress

    names, folder = snakemake.wildcards, Path(snakemake.output.arrays[0]).parent
    if read_json(snakemake.input.tokens).get("corpus", {}).get("kind") == "causal":
        device("auto")  # its law takes the first GPU that this job sees
    write_conditionals(
        Path(snakemake.input.tokens).parent,
        folder,
        int(names.sequences),
        names.positions,
        snakemake.params.config["seed"],
        Progress(f"conditionals {names.corpus}", "tokens"),
        int(os.environ["RAYON_NUM_THREADS"]),
    )
