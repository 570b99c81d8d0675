"""Gather the claims of every study into one table."""

from pathlib import Path

from _job import job

with job(snakemake):
    from masklab.claims.claim_files import gather, write_claims

    write_claims(gather(snakemake.input.claims), Path(snakemake.output.csv).with_suffix(""))
