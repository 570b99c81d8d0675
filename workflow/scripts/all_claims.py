"""Gather the claims of every study into one table."""

from pathlib import Path

from _job import job

with job(snakemake):
    from masklab.claims.claim_files import gather, write_claims
    from masklab.claims.verdict import COLUMNS
    from masklab.scores.kept import kept_claims

    stem = Path(snakemake.output.csv).with_suffix("")
    others = kept_claims(stem, snakemake.params.studies, COLUMNS)
    write_claims(gather([*snakemake.input.claims, *others]), stem)
