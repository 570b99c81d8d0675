"""Studies: a wing for each paper, and what a study can show and claim, its own or a wing's.

A wing is a package with `FIGURES` and `TABLES` (name -> `masklab.report.item.Item`), a module `captions` with what each
of them shows in words, and `claims(view)`, a list of `masklab.claims.claim.Claim`; perhaps `notices(view)`, lines about
the claims that it leaves out. It is light, since the workflow reads it when it is parsed. A user's files add figures,
tables and claims to any study (`masklab.own`).
"""

import importlib
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace

from masklab.claims.claim import SCORES, Claim
from masklab.config import kinds
from masklab.config.inherit import choices
from masklab.config.places import noted
from masklab.config.probe_metrics import METRICS, metrics_of
from masklab.config.schema import Study
from masklab.errors import MaskLabError
from masklab.report import generic
from masklab.report.item import Item
from masklab.scores.view import View
from masklab.studies import comparisons

OF_PAIRS = ("correlation", "partial_correlation")  # of readings, which margins can be about, too

WINGS = {
    "mlsm": "masklab.studies.mlsm",
    "dh": "masklab.studies.dh",
    "implicit-bias": "masklab.studies.implicit_bias",
    "mae": "masklab.studies.mae",
}


def wing_of(name: str, study: Study) -> str | None:
    """The wing of a study: the one it names, else the one of its own name; None: it has none."""
    if study.wing is None:
        return name if name in WINGS else None
    if study.wing not in WINGS:
        raise MaskLabError(
            f"config: studies.{name}.wing: {study.wing!r} is not a wing{choices(study.wing, WINGS, 'wings')}"
        )
    return study.wing


def _wing(wing):
    return importlib.import_module(WINGS[wing]) if wing else None


def items(section: str, wing: str | None) -> dict[str, Item]:
    """Every figure (section `figures`) or table (`tables`) that a study with this wing can have, by name."""
    wing_module = _wing(wing)
    listed = {"figures": "FIGURES", "tables": "TABLES"}[section]
    entries = dict(getattr(generic, listed)) | (getattr(wing_module, listed) if wing_module else {})
    return entries | {name: kind.make for name, kind in kinds.known(section).items()}


def caption(name: str, study: Study, section: str, item: str) -> str:
    """What a figure or table of a study shows, in words; empty where nobody said it."""
    wing = wing_of(name, study)
    known = getattr(importlib.import_module(f"{WINGS[wing]}.captions"), section.upper()) if wing else {}
    return find(name, study, section, item).caption or known.get(item, "")


def find(name: str, study: Study, section: str, item: str) -> Item:
    """A figure or table of a study; MaskLabError says which there are."""
    entries = items(section, wing_of(name, study))
    if item not in entries:
        raise MaskLabError(
            f"config: studies.{name}.{section}: no {section[:-1]} {item!r}{choices(item, entries, 'there are', 30)}"
        )
    return entries[item]


def claims_of(name: str, study: Study, view: View) -> list[Claim]:
    """The claims that a study tests; MaskLabError where one is unknown, or `all` leaves none."""
    if not study.claims:
        return []
    every = every_claim(wing_of(name, study), view)
    known = {claim.name: claim for claim in every}
    if len(known) < len(every):
        twice = next(claim.name for claim in every if sum(other.name == claim.name for other in every) > 1)
        raise MaskLabError(f"config: studies.{name}.claims: {twice!r} names two claims")
    if (unknown := _margins_of_nothing(study, view)) and not _silent(view):
        raise MaskLabError(f"config: studies.{name}.margins: {next(iter(unknown.values()))}")
    where = f"config: studies.{name}.claims"
    if study.claims == "all" and not every:
        none = "no claim can be tested on the study's recipes and tasks"
        if not wing_of(name, study):
            none += "; no panel has two recipes that one probe measures on the same tasks, to be compared"
        raise MaskLabError(f"{where}: {none}")
    for claim in study.claims if study.claims != "all" else ():
        if claim not in known:
            there = choices(claim, known, "there are")
            raise MaskLabError(f"{where}: no claim {claim!r} on these recipes and tasks{there}")
    tested = every if study.claims == "all" else [known[claim] for claim in study.claims]
    names = [claim.name for claim in tested]
    for claim in study.headline:
        if claim not in names:
            there = choices(claim, names, "there are")
            raise MaskLabError(f"config: studies.{name}.headline: {claim!r} is no claim that it tests{there}")
    return headed(tested, study.headline)


def notices(config) -> list[str]:
    """Lines, with their places: of each margin of a metric that nobody says is measured, by a probe that may do so, and
    of claims that a wing leaves out where all are asked for."""
    lines = []
    for name, study in config.studies.items():
        own = any(config.probes[probe].kind not in kinds.OURS["probes"] for probe in study.probes)
        view = View.of(config, name) if own and study.margins and study.claims else View(name)
        if silent := _silent(view):
            may = f"unless probes of kind {' or '.join(silent)} give it, which `ranges` of their settings can say"
            unknown = _margins_of_nothing(study, view).items()
            lines += [f"studies.{name}.margins.{metric}: counts for nothing {may}: {what}" for metric, what in unknown]
        wing = _wing(wing_of(name, study))
        if study.claims == "all" and hasattr(wing, "notices"):
            with suppress(MaskLabError):  # two recipes that could be meant: `every_claim` refuses them
                lines += wing.notices(View.of(config, name))
    return [noted(line, config.raw) for line in lines]


def _margins_of_nothing(study: Study, view: View) -> dict[str, str]:
    """Metric -> what is wrong, of each that a study has a margin of and that no probe says to give."""
    metrics = [metric for facts in view.probes.values() for metric in metrics_of(facts) or ()]
    metrics += [facts["metric"] for facts in view.tasks.values()]
    metrics += [metric for given in METRICS.values() for metric in given]  # in vain, but no slip
    known = [*metrics, *(f"log_{metric}" for metric in metrics), *OF_PAIRS]
    known = list(dict.fromkeys([*known, *(score.replace(" ", "_") for score in SCORES)]))
    unknown = [metric for metric in study.margins if metric not in known]
    return {metric: f"no metric {metric!r}{choices(metric, known, 'there are')}" for metric in unknown}


def _silent(view: View) -> list[str]:
    """Kinds of a user's among the probes of a study that do not say what they measure."""
    kinds_there = dict.fromkeys(facts["kind"] for facts in view.probes.values() if metrics_of(facts) is None)
    return [kind for kind in kinds_there if kind not in kinds.OURS["probes"]]


def headed(claims: list[Claim], headline: list[str]) -> list[Claim]:
    """Claims with these as headlines, or, where none are named, with those that they mark themselves."""
    return [replace(claim, headline=claim.name in headline) for claim in claims] if headline else claims


def every_claim(wing: str | None, view: View) -> list[Claim]:
    """Every claim on a view: those of a wing and of a user's files; without any of these, comparisons of recipes."""
    wing_module = _wing(wing)
    try:
        claims = list(wing_module.claims(view)) if wing_module else []
    except MaskLabError as error:  # recipes of which a wing cannot tell which is meant
        raise MaskLabError(f"config: studies.{view.study}.claims: {error}") from None
    for kind in kinds.known("claims").values():
        claims += _made_by(kind, view)
    return claims if claims or wing else comparisons.claims(view)


def _made_by(kind: kinds.Kind, view: View) -> list[Claim]:
    """What a user's function makes of a view: claims, or MaskLabError with its file."""
    with kinds.blamed():
        made = kind.make(view)
        made = list(made) if isinstance(made, Iterable) else made
    if isinstance(made, list) and all(isinstance(claim, Claim) for claim in made):
        return made
    raise kind.refused("a list of own.Claim", made)
