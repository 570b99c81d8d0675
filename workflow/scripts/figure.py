"""Draw one figure from scores and facts."""

from pathlib import Path

from _job import job
from _results import results

with job(snakemake):
    from masklab.report.figure_files import write_figure
    from masklab.studies import items

    item = items("figures", snakemake.params.config["wing"])[snakemake.wildcards.figure]
    inputs = dict(snakemake.input.items())
    corpora = {"corpora": list(inputs["corpora"])} if "corpora" in inputs else {}
    figure, data = item.draw(results(snakemake), **corpora)
    with item.written("figures"):
        write_figure(figure, data, Path(snakemake.output.pdf).with_suffix(""))
