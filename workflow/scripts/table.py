"""Make one table from scores and facts."""

from pathlib import Path

from _job import job
from _results import results

with job(snakemake):
    from masklab.pages.templating import write_page
    from masklab.report.cells import write_table
    from masklab.studies import items

    item = items("tables", snakemake.params.config["wing"])[snakemake.wildcards.table]
    scores = results(snakemake)
    frame = item.tabulate(scores)
    with item.written("tables"):
        write_table(frame, Path(snakemake.output.csv).with_suffix(""))
    title = f"{snakemake.wildcards.study}: {snakemake.wildcards.table}"
    write_page(snakemake.output.html, title, Path(snakemake.output.markdown).read_text(encoding="utf-8"))
