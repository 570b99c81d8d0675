"""Figures, tables and claims of studies: what they are drawn from."""

from artifacts import Artifact
from artifacts.measuring import score_files
from masklab.claims import CLAIMS
from masklab.claims.spec import claim_needs, claims_of
from masklab.figures.needs import drawn_corpora, find, given, needs
from masklab.figures.spec import metrics
from masklab.studies import kind_of


class Figure(Artifact):
    place, script, files = "figures/{study}/{figure}", "figure.py", r"\.(?:pdf|png|parquet|csv)"

    def inputs(self, study, figure):
        """Scores, and training splits of corpora: of replicate 1, where each has its own."""
        corpora = drawn_corpora(study, figure, self.config)
        return {
            "scores": score_files(self.paths, study, needs(study, figure, self.config)),
            "corpora": [self.paths.folder("corpora", corpus, 1) + "/train.parquet" for corpus in corpora],
        }

    def settings(self, study, figure):
        """The study's declaration, labels and metrics."""
        plain = self.config.studies[study].model_dump(mode="json", exclude={"claims", "margin"})
        return {"study": plain, "arguments": given(study, figure, self.config)}

    def roots(self, study, figure):
        return [find(study, figure).make.partition(":")[0]]


class Table(Figure):
    place, script, files = "tables/{study}/{table}", "table.py", r"\.(?:parquet|csv|md)"

    def inputs(self, study, table):
        return {"scores": score_files(self.paths, study, needs(study, table, self.config))}

    def settings(self, study, table):
        return super().settings(study, table)

    def roots(self, study, table):
        return super().roots(study, table)


class StudyClaims(Artifact):
    place, script, files = "claims/{study}", "claims.py", r"\.(?:parquet|csv|md)"

    def inputs(self, study):
        return {"scores": score_files(self.paths, study, claim_needs(study, self.config))}

    def settings(self, study):
        declared = self.config.studies[study]
        plain = declared.model_dump(mode="json", exclude={"figures", "tables", "extra"})
        return {"study": plain, "metrics": metrics(self.config, declared)}

    def roots(self, study):
        effects = [claim.effect for claim in claims_of(study, self.config.studies[study])]
        estimators = {effect.estimator for effect in effects}
        return [
            CLAIMS[kind_of(study, CLAIMS, "claims")],
            *sorted(estimators),
            *sorted({type(e).__module__ for e in effects}),
        ]


class Claims(Artifact):
    """The claims of all studies in one table."""

    place, script, files = "claims", "all_claims.py", r"\.(?:parquet|csv|md)"

    def inputs(self):
        files = [path for study in self.config.studies for path in claims(self.paths, study).values()]
        return {"claims": [file.removesuffix(".csv") + ".parquet" for file in files]}


def figures(paths, study) -> dict[str, str]:
    return {name: paths.result("figures", study, f"{name}.pdf") for name in paths.config.studies[study].figures}


def tables(paths, study) -> dict[str, str]:
    return {name: paths.result("tables", study, f"{name}.csv") for name in paths.config.studies[study].tables}


def claims(paths, study) -> dict[str, str]:
    """{"claims": file} of a study that declares some, else {}."""
    return {"claims": paths.result("claims", f"{study}.csv")} if paths.config.studies[study].claims else {}


def items(paths, study) -> dict[str, str]:
    """Every figure and table of a study, and its claims: name -> file."""
    return figures(paths, study) | tables(paths, study) | claims(paths, study)


def check(config) -> None:
    """Resolve what every figure and table needs, so that an impossible one stops the run before any job."""
    for study, declared in config.studies.items():
        for name in [*declared.figures, *declared.tables]:
            needs(study, name, config)
        claim_needs(study, config)
