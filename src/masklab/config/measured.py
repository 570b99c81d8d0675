"""What a study measures: which probe on which recipe, and on how many replicates of it."""

from masklab.config.nulls import null_measurements
from masklab.config.references import study_models
from masklab.config.replicates import measured_replicates


def study_pairs(config, study: str) -> list[tuple[str, str]]:
    """(probe, recipe) pairs that a study measures, each once: of its panels, of `extra`, and of its nulls."""
    declared = config.studies[study]
    members = study_models(declared)
    pairs = {
        (probe, recipe): None
        for probe, recipes in declared.probes.items()
        for recipe in (members if recipes == "all" else recipes)
    }
    nulls = null_measurements(config, study).items()
    return list(pairs | {(probe, recipe): None for probe, recipes in nulls for recipe in recipes})


def replicates_of(config, study: str, pairs) -> list[tuple[str, str, int]]:
    """(probe, recipe, replicate) for each replicate of (probe, recipe) pairs that a study measures."""
    return [
        (probe, recipe, replicate)
        for probe, recipe in pairs
        for replicate in range(1, _asked(config, study, probe, recipe) + 1)
    ]


def _asked(config, study, probe, recipe):
    # of a probe that shows examples; a user's may mean something else by it
    most = getattr(config.probes[probe], "replicates", None)
    count = measured_replicates(config, study, recipe)
    return min(count, most) if isinstance(most, int) else count
