"""Gather every score into one table. params.studies: study -> its score files."""

from _job import job

with job(snakemake):
    from masklab.files import write_csv, write_parquet
    from masklab.scores.kept import with_kept_scores
    from masklab.scores.schema import gather

    studies = snakemake.params.studies
    frame = with_kept_scores(gather(studies), snakemake.params.made, list(studies))
    write_parquet(frame, snakemake.output.parquet)
    write_csv(frame, snakemake.output.csv)
