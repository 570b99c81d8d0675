"""Compute the exact conditionals of a corpus's test sequences."""

from pathlib import Path

from _job import job

with job(snakemake):
    import os

    from masklab.conditionals import write_conditionals
    from masklab.jobs.progress import Progress

    names, folder = snakemake.wildcards, Path(snakemake.output.arrays[0]).parent
    write_conditionals(
        Path(snakemake.input.tokens).parent,
        folder,
        int(names.sequences),
        names.positions,
        snakemake.params.config["seed"],
        Progress(f"conditionals {names.corpus}", "tokens"),
        int(os.environ["RAYON_NUM_THREADS"]),
    )
