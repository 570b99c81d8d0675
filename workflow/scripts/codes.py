"""Code every token of a corpus under a dictionary."""

from _job import job

with job(snakemake):
    from _codes import write

    write(snakemake)
