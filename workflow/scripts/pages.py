"""Write the pages of results."""

from pathlib import Path

from _job import job

with job(snakemake):
    from masklab.pages.write import write

    write(Path(snakemake.output.html).parent, snakemake.params.config["outline"], snakemake.params.options, job=True)
