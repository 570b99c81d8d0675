"""What figures, tables and claims share: the scores and facts that their jobs read.

It counts as code of these jobs, which `_job` does not.
"""


def results(snakemake, draws=0):
    """`Results` of what a figure, table or claims job reads, with items resampled `draws` times."""
    from masklab.scores.load import load
    from masklab.scores.view import View

    view = View(**snakemake.params.config["view"])
    manifests = dict(zip(view.instances(), snakemake.input.models, strict=True))
    return load(view, snakemake.input.scores, manifests, draws)
