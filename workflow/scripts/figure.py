"""Draw one figure from scores."""

from pathlib import Path

from _job import job

with job(snakemake):
    from masklab.config.schema import Study
    from masklab.figures.needs import find
    from masklab.figures.write import write_figure
    from masklab.scores.schema import gather

    params, names = snakemake.params.config, snakemake.wildcards
    draw = find(names.study, names.figure).function()
    arguments = dict(params["arguments"])
    if snakemake.input.corpora:
        arguments["corpora"] = list(snakemake.input.corpora)
    figure, data = draw(gather({names.study: snakemake.input.scores}), Study(**params["study"]), **arguments)
    write_figure(figure, data, Path(snakemake.output.pdf).with_suffix(""))
