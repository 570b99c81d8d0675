"""Gather the facts of all recipes, corpora, tasks and probes into one table."""

from _job import job

with job(snakemake):
    import pandas as pd

    from masklab.files import read_json, write_csv, write_parquet
    from masklab.scores.facts import COLUMNS, rows

    params, found = snakemake.params.config, []
    for noun, entries in params["facts"].items():
        for name, facts in entries.items():
            found += rows(noun, name, facts)
    for (recipe, replicate), manifest in zip(params["models"], snakemake.input.models, strict=True):
        found += rows("recipe", recipe, read_json(manifest).get("facts", {}), replicate)
    frame = pd.DataFrame(found, columns=COLUMNS)
    write_parquet(frame, snakemake.output.parquet)
    write_csv(frame, snakemake.output.csv)
