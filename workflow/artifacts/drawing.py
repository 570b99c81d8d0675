"""Figures, tables, claims and facts of studies: what they are drawn from."""

import functools
import textwrap
from dataclasses import replace

from artifacts import Artifact, of_kind
from artifacts.measuring import score_files
from masklab.config import kinds
from masklab.config.faults import Faults, Several
from masklab.config.measured import replicates_of, study_pairs
from masklab.config.names import name_problem
from masklab.errors import MaskLabError
from masklab.jobs.store import FILES
from masklab.pages.wording import title
from masklab.scores.reading import leaves
from masklab.scores.view import View
from masklab.studies import WINGS, caption, claims_of, every_claim, find, wing_of


class _OfAStudy(Artifact):
    """What is made of a part of a study: the scores and manifests of what that part reads."""

    def __init__(self, paths):
        super().__init__(paths)
        self.view = functools.cache(lambda study: View.of(self.config, study))

    def read_by(self, part: View, pairs) -> dict:
        """Inputs of a part of a study; `models`: in the order of its `instances`."""
        study, paths = part.study, self.paths
        return {
            "scores": score_files(paths, study, pairs),
            "models": [f"{paths.folder('models', recipe, k)}/manifest.json" for recipe, k in part.instances()],
        }


class Figure(_OfAStudy):
    place, script, ends = "figures/{study}/{figure}", "figure.py", FILES["figure"]
    section, what = "figures", "figure"

    def __init__(self, paths):
        super().__init__(paths)
        self._found = functools.cache(self._find)

    def item(self, names):
        """The figure or table, and the part of its study that it shows."""
        return self._found(names["study"], names[self.what])

    def _find(self, study, name):
        item = find(study, self.config.studies[study], self.section, name)
        try:
            return item, item.part(self.view(study))
        except MaskLabError as error:
            without = f"(or leave {name} out of {self.section})"
            raise MaskLabError(f"config: studies.{study}.{self.section}: {name}: {error} {without}") from None

    def inputs(self, **names):
        """Also training splits of corpora; those of replicate 1 where each replicate has its own."""
        item, part = self.item(names)
        corpora = [self.paths.folder("corpora", corpus, 1) + "/train.parquet" for corpus in item.corpora(part)]
        return self.read_by(part, item.needs(part)) | ({"corpora": corpora} if corpora else {})

    def settings(self, **names):
        """The part of the study that it shows, with its facts; the wing that draws it."""
        study = names["study"]
        _, part = self.item(names)
        return {"view": part.plain(), "wing": wing_of(study, self.config.studies[study])}

    def roots(self, **names):
        """What makes it, what chooses what it shows."""
        item, _ = self.item(names)
        kind = kinds.known(self.section).get(names[self.what])
        return of_kind(kind) if kind else [item.make.partition(":")[0], item.choose.__module__]


class Table(Figure):
    place, script, ends = "tables/{study}/{table}", "table.py", FILES["table"]
    section, what = "tables", "table"


class StudyClaims(_OfAStudy):
    place, script, ends = "claims/{study}", "claims.py", FILES["study_claims"]

    def __init__(self, paths):
        super().__init__(paths)
        self.part = functools.cache(self._part)

    def _part(self, study):
        """(claims, (probe, recipe) pairs that they read, the part of the study that these are of)."""
        view, declared = self.view(study), self.config.studies[study]
        claims = claims_of(study, declared, view)
        pairs = {}
        for claim in claims:
            try:
                pairs |= dict.fromkeys(claim.needs(view))
            except MaskLabError as error:
                raise MaskLabError(f"config: studies.{study}.claims: {claim.name}: {error}") from None
        pairs = list(pairs)
        recipes = [*(recipe for _, recipe in pairs), *(recipe for claim in claims for recipe in claim.learners(view))]
        part = view.only(recipes, view.tasks, (probe for probe, _ in pairs))
        # what a recipe is, and so a claim, may depend on the others of its panel, read or not
        facts = part.recipes | {recipe: view.recipes[recipe] for recipe in view.members}
        return claims, pairs, replace(part, panels=view.panels, recipes=facts)

    def inputs(self, study):
        _, pairs, part = self.part(study)
        return self.read_by(part, pairs)

    def check(self, study):
        """MaskLabError where the job, which gets a part of the study, would make other claims than were asked for."""
        claims, _, part = self.part(study)
        made = {claim.name: claim for claim in every_claim(wing_of(study, self.config.studies[study]), part)}
        for claim in claims:
            if claim.name not in made or leaves(made[claim.name].effect) != leaves(claim.effect):
                raise MaskLabError(
                    f"config: studies.{study}.claims: {claim.name!r} is another claim, or none, where the study has the"
                    " recipes and probes alone that its claims read; a function of claims must make the same of these"
                )

    def settings(self, study):
        claims, _, part = self.part(study)
        declared = self.config.studies[study]
        named = {"headline": declared.headline} if declared.headline else {}
        names = [claim.name for claim in claims]
        return {"view": part.plain(), "wing": wing_of(study, declared), "claims": names} | named

    def roots(self, study):
        wing = wing_of(study, self.config.studies[study])
        modules = [f"{WINGS[wing]}.claims"] if wing else []
        return [*modules, *(part for kind in kinds.known("claims").values() for part in of_kind(kind))]


class Claims(Artifact):
    """The claims of all studies in one table."""

    place, script, ends = "claims", "all_claims.py", (".parquet", ".csv", ".md")

    def inputs(self):
        studies = self.config.studies
        return {
            "claims": [self.paths.result("claims", f"{study}.parquet") for study in studies if studies[study].claims]
        }


class Facts(Artifact):
    """What every recipe, task, corpus and probe of the studies is, by key, in one table."""

    place, script, ends = "facts", "facts.py", (".parquet", ".csv")

    def models(self) -> list[tuple[str, int]]:
        """Replicates of the recipes that studies measure."""
        measured = {}
        for study in self.config.studies:
            for _, recipe, k in replicates_of(self.config, study, study_pairs(self.config, study)):
                measured.setdefault(recipe, set()).add(k)
        return [(recipe, k) for recipe, replicates in measured.items() for k in sorted(replicates)]

    def inputs(self):
        return {"models": [f"{self.paths.folder('models', name, k)}/manifest.json" for name, k in self.models()]}

    def settings(self):
        from masklab.scores.every_fact import every

        return {"facts": every(self.config), "models": self.models()}


def labels(config, section: str, wildcards) -> dict[str, str]:
    """What a figure or table is called and, briefly, shows, for Snakemake's report; it takes braces for wildcards."""
    name = getattr(wildcards, section.removesuffix("s"))
    shows = caption(wildcards.study, config.studies[wildcards.study], section, name)
    brief = textwrap.shorten(shows.translate({ord("{"): "(", ord("}"): ")"}), 60, placeholder=" …")
    return {"what": title(name), "shows": brief}


def items(paths, study) -> dict[str, list[str]]:
    """Every figure and table of a study, and its claims: name -> files, the first of them what it is known by."""
    declared = paths.config.studies[study]
    found = {name: paths.outputs("figure", study=study, figure=name) for name in declared.figures}
    found |= {name: paths.outputs("table", study=study, table=name) for name in declared.tables}
    return found | ({"claims": paths.outputs("study_claims", study=study)} if declared.claims else {})


def check_names(config, study, declared) -> None:
    """Figures and tables that a study names are ones that it can have; MaskLabError with a line for each other one.

    Each is a target, `<study>_<name>`, of which there is one, and files below the results.
    """
    several, taken = Several(), {"claims": "claims"} if declared.claims else {}
    for section in ("figures", "tables"):
        for name in getattr(declared, section):
            with several.collect():
                find(study, declared, section, name)
                where = f"config: studies.{study}.{section}"
                if problem := name_problem(name):
                    raise MaskLabError(f"{where}: {name!r}: {problem}")
                if (other := taken.setdefault(name, section)) != section:
                    raise MaskLabError(
                        f"{where}: {name!r} is the name of its {other} too, and {study}_{name} would be both; register"
                        " it under another name"
                    )
    several.stop()


def check(paths) -> None:
    """Resolve what every figure, table and claim needs, so that an impossible one stops the run before any job."""
    faults = Faults(paths.config.raw)
    for study, declared in paths.config.studies.items():
        for name in declared.figures:
            with faults.collect():
                paths.rules["figure"].inputs(study=study, figure=name)
        for name in declared.tables:
            with faults.collect():
                paths.rules["table"].inputs(study=study, table=name)
        if declared.claims:
            with faults.collect():
                paths.rules["study_claims"].inputs(study=study)
                paths.rules["study_claims"].check(study)
    faults.stop()
