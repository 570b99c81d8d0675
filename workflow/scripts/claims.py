"""Test the claims of one study on scores."""

from pathlib import Path

from _job import job

with job(snakemake):
    from masklab.claims.spec import claims_of
    from masklab.claims.verdict import test_claims
    from masklab.claims.write import write_claims
    from masklab.config.schema import Study
    from masklab.scores.schema import gather

    name, params = snakemake.wildcards.study, snakemake.params.config
    study = Study(**params["study"])
    frame = test_claims(claims_of(name, study), gather({name: snakemake.input.scores}), study, name, params["metrics"])
    write_claims(frame, Path(snakemake.output.csv).with_suffix(""))
