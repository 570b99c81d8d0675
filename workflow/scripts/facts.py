"""Gather the facts of the recipes, corpora, tasks and probes of all studies into one table."""

from _job import job

with job(snakemake):
    import pandas as pd

    from masklab.files import read_json, write_csv, write_parquet
    from masklab.scores.facts import COLUMNS, rows
    from masklab.scores.kept import with_kept_facts

    params, gathered = snakemake.params.config, []
    for noun, entries in params["facts"].items():
        for name, facts in entries.items():
            gathered += rows(noun, name, facts)
    for (recipe, replicate), manifest in zip(params["models"], snakemake.input.models, strict=True):
        gathered += rows("recipe", recipe, read_json(manifest).get("facts", {}), replicate)
    frame = pd.DataFrame(gathered, columns=COLUMNS)
    frame = with_kept_facts(frame, snakemake.params.made, snakemake.params.studies)
    write_parquet(frame, snakemake.output.parquet)
    write_csv(frame, snakemake.output.csv)
