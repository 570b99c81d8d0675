"""Test the claims of one study on scores and facts."""

from pathlib import Path

from _job import job
from _results import results

with job(snakemake):
    from masklab.claims.claim_files import write_claims
    from masklab.claims.verdict import test_claims
    from masklab.pages.templating import write_page
    from masklab.scores.load import DRAWS
    from masklab.studies import every_claim, headed

    scores = results(snakemake, DRAWS)
    known = {claim.name: claim for claim in every_claim(snakemake.params.config["wing"], scores.view)}
    claims = [known[name] for name in snakemake.params.config["claims"]]
    claims = headed(claims, snakemake.params.config.get("headline", []))
    write_claims(test_claims(claims, scores), Path(snakemake.output.csv).with_suffix(""))
    title = f"Claims of {snakemake.wildcards.study}"
    write_page(snakemake.output.html, title, Path(snakemake.output.markdown).read_text(encoding="utf-8"))
