"""Compute the exact conditionals of a corpus's test sequences."""

from pathlib import Path

from _job import device, job

with job(snakemake):
    import os

    from masklab.conditionals import write_conditionals
    from masklab.files import read_json
    from masklab.jobs.progress import Progress
    from masklab.jobs.state import done, locked

    names, folder = snakemake.wildcards, Path(snakemake.output.arrays[0]).parent
    if read_json(snakemake.input.tokens).get("corpus", {}).get("kind") == "causal":
        device("auto")  # its law takes the first GPU that this job sees
    with locked(snakemake.params.state) as state:
        write_conditionals(
            Path(snakemake.input.tokens).parent,
            folder,
            int(names.sequences),
            names.positions,
            snakemake.params.config["seed"],
            state,
            Progress(f"conditionals {names.corpus}", "tokens", folder=state),
            int(os.environ["RAYON_NUM_THREADS"]),
        )
        done(state)
