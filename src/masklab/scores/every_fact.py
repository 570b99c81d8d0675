"""The facts of all that the studies of a config use: what the run's table of facts is made of.

Apart from `facts`, which jobs import too: which recipes a study measures, the whole config says.
"""

from masklab.config.measured import study_pairs
from masklab.config.references import split_reference, study_models
from masklab.scores.facts import base, corpus_facts, names_corpus, probe_facts, recipe_facts, task_facts


def every(config) -> dict[str, dict[str, dict]]:
    """Noun -> name -> facts: of the recipes, corpora, tasks and probes that the studies of a config use, in its order.

    Recipes are those of the studies, their nulls, and what these start or learn from.
    """
    recipes, tasks, probes = _used(config)
    recipes = {name: recipe_facts(config, name) for name in config.models if name in recipes}
    tasks = {name: task_facts(config, name) for name in config.tasks if name in tasks}
    stated = [each.items() for each in (*recipes.values(), *tasks.values())]
    corpora = {value for facts in stated for key, value in facts if names_corpus(key, value)}
    return {
        "recipe": recipes,
        "corpus": {name: corpus_facts(config, name) for name in config.corpora if name in corpora},
        "task": tasks,
        "probe": {name: probe_facts(config, name) for name in config.probes if name in probes},
    }


def _used(config) -> tuple[set[str], set[str], set[str]]:
    """Recipes, tasks and probes of the studies of a config."""
    recipes, tasks, probes = [], set(), set()
    for name, study in config.studies.items():
        recipes += [*study_models(study), *(recipe for _, recipe in study_pairs(config, name))]
        probes |= study.probes.keys()
        tasks |= {base(task) for members in study.sets.values() for task in members}
    for name in recipes:  # grows by what they start or learn from
        model = config.models[name]
        learned = config.dictionaries[model.dictionary].model if model.dictionary else None
        before = {split_reference(each, name)[0] for each in (model.init, model.teacher, learned) if each}
        recipes += before - {*recipes}
    return {*recipes}, tasks | {task for name in probes for task in config.probes[name].tasks}, probes
