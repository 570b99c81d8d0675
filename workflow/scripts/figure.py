"""Draw one figure from scores and facts."""

from pathlib import Path

from _job import job
from _results import results

with job(snakemake):
    from masklab.report.write import write_figure
    from masklab.studies import items

    item = items("figures", snakemake.params.config["wing"])[snakemake.wildcards.figure]
    found = results(snakemake)
    corpora = {"corpora": list(snakemake.input.corpora)} if "corpora" in dict(snakemake.input.items()) else {}
    figure, data = item.function()(found, item.choose(found.view), **corpora)
    write_figure(figure, data, Path(snakemake.output.pdf).with_suffix(""))
