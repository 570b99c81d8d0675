"""Make one table from scores."""

from pathlib import Path

from _job import job

with job(snakemake):
    from masklab.config.schema import Study
    from masklab.figures.needs import find
    from masklab.scores.schema import gather
    from masklab.tables.write import write_table

    params, names = snakemake.params.config, snakemake.wildcards
    make = find(names.study, names.table).function()
    frame = make(gather({names.study: snakemake.input.scores}), Study(**params["study"]), **params["arguments"])
    write_table(frame, Path(snakemake.output.csv).with_suffix(""))
