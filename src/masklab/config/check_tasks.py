"""What tasks and probes ask of each other and of the rest of the config. One line per fault."""

from masklab.config.declared import known
from masklab.config.inherit import listed
from masklab.config.references import LAWS, OF_CORPUS, law_entry, named_law, stated_rows
from masklab.errors import MaskLabError

# What rows of a kind of task hold; a user's kind may hold any of these.
HOLDS = {"english-pairs": "pairs", "pair-files": "pairs", "babylm-pairs": "pairs", "english-ratings": "ratings"}
HOLDS |= {"english-spans": "spans", "squad": "spans"}
HOLDS |= dict.fromkeys(
    ("english-labels", "label-files", "babylm-labels", "patterns", "hmm", "pcfg", *OF_CORPUS), "labels"
)
# What a kind of probe measures.
MEASURES = {
    "minimal_pairs": ("pairs",),
    "finetune": ("labels", "ratings", "spans"),
    "linear_probe": ("labels",),
    "replaced": ("labels",),
    "paraphrased": ("labels",),
}
# Kinds whose texts a causal corpus's words can be kept of, where they hold labels.
TEXTS = ("english-labels", "label-files", "babylm-labels", "glue")
DOMAINS = ("A-D1", "B-D1", "A-D2", "B-D2")  # of tests of patterns: form and chain


def holds(task) -> str | None:
    """`labels`, `pairs`, `ratings` or `spans`: what a task holds; None: nobody knows, of a user's kind."""
    if task.kind == "glue":
        return "ratings" if task.task == "stsb" else "labels"
    return HOLDS.get(task.kind)


def check_task(config, name, task):
    """The law, or the corpus and the task, that a task is made from are declared and fit."""
    law = named_law(task)
    if law and isinstance(law[1], str):
        known(getattr(config, LAWS[law[0]]), law[1], f"tasks.{name}.{law[0]}")
    if task.kind == "patterns":
        _check_patterns(name, law[1] if isinstance(law[1], str) else "it", task, law_entry(config, task))
    if task.kind == "pcfg":
        check_lengths(f"tasks.{name}", task, law_entry(config, task))
    if task.kind == "hmm" and task.position > task.length:
        raise MaskLabError(f"config: tasks.{name}.position: {task.position} is after the last word ({task.length})")
    if task.kind in OF_CORPUS:
        _check_corpus(config, name, task)
    if task.kind == "restricted-labels":
        _check_texts(config, name, task)
    if task.kind == "next-word" and task.position > (longest := config.corpora[task.corpus].length):
        raise MaskLabError(
            f"config: tasks.{name}.position: {task.position} is after the last word of {task.corpus!r} ({longest})"
        )


def _check_corpus(config, name, task):
    """The corpus of a task is drawn from a causal model."""
    known(config.corpora, task.corpus, f"tasks.{name}.corpus")
    if config.corpora[task.corpus].kind != "causal":
        fitting = [other for other, corpus in config.corpora.items() if corpus.kind == "causal"]
        raise MaskLabError(
            f"config: tasks.{name}.corpus: {task.corpus!r} is not of kind 'causal'"
            + listed(fitting, what="of this kind")
        )


def _check_texts(config, name, task):
    """The task whose words are restricted holds labelled texts."""
    known(config.tasks, task.task, f"tasks.{name}.task")
    if config.tasks[task.task].kind not in TEXTS or holds(config.tasks[task.task]) != "labels":
        fitting = [other for other, own in config.tasks.items() if own.kind in TEXTS and holds(own) == "labels"]
        raise MaskLabError(
            f"config: tasks.{name}.task: {task.task!r} is not a labelled task of texts{listed(fitting, what='such')}"
        )


def check_lengths(where, drawn, grammar):
    """Sentences of a grammar can be as long as they must be."""
    if drawn.min_length > drawn.max_length:
        raise MaskLabError(f"config: {where}.min_length: {drawn.min_length} is above max_length ({drawn.max_length})")
    levels = len(grammar.levels)
    if grammar.file is None and drawn.min_length > (most := 2 ** (levels - 1)):
        raise MaskLabError(
            f"config: {where}.min_length: {drawn.min_length}, but a sentence of a grammar of {levels} levels has at"
            f" most {most} words"
        )


def _check_patterns(name, law, task, chains):
    """There is a chain for each domain, and there are synsets enough for a set."""
    if chains.chains < 2:
        raise MaskLabError(
            f"config: tasks.{name}.chains: the domains D1 and D2 need two chains, and {law!r} has {chains.chains}"
        )
    if task.set_size > chains.synsets:
        raise MaskLabError(
            f"config: tasks.{name}.set_size: {task.set_size} is more than the synsets of {law!r} ({chains.synsets})"
        )


def check_probe(config, name, probe):
    """The tasks that a probe names are declared, hold what it measures, and have the rows that it asks for."""
    if twice := [task for task in probe.tasks if probe.tasks.count(task) > 1]:  # its scores would stand there twice
        raise MaskLabError(f"config: probes.{name}.tasks: {twice[0]!r} is listed twice; once is enough")
    for task in probe.tasks:
        known(config.tasks, task, f"probes.{name}.tasks")
        found, measured = holds(config.tasks[task]), MEASURES.get(probe.kind)
        if found and measured and found not in measured:
            fitting = [other for other, entry in config.tasks.items() if holds(entry) in (*measured, None)]
            raise MaskLabError(
                f"config: probes.{name}.tasks: {task!r} holds {found}; a probe of kind {probe.kind} measures"
                f" {_either(measured)}{listed(fitting, 6, 'such tasks')}"
            )
        if rows := stated_rows(config.tasks[task]):
            check_sizes(name, probe, task, rows)
        if probe.kind == "replaced":
            _check_replaced(config, name, probe, task)
        if probe.kind == "paraphrased" and probe.verbalisers is not None:
            _check_query(config, name, probe, task)
    if probe.kind == "rank" and probe.masking.mask + probe.masking.random > 1:
        raise MaskLabError(f"config: probes.{name}.masking: mask + random must be at most 1")
    if probe.kind == "prediction":
        before = _one_hole(f"probes.{name}.sentence", probe.sentence)
        if before and not before.endswith(" "):
            raise MaskLabError(
                f"config: probes.{name}.sentence: [MASK] must stand for a whole word, after a space"
                f" (got {probe.sentence!r})"
            )


def _one_hole(where, text) -> str:
    """What stands before the one [MASK] of a text."""
    if text.count("[MASK]") != 1:
        raise MaskLabError(f"config: {where}: must hold exactly one [MASK] (got {text!r})")
    return text.partition("[MASK]")[0]


def _check_query(config, name, probe, task):
    """A query of examples has one [MASK], a word for each label, and a second text only where the task has one."""
    _one_hole(f"probes.{name}.query", probe.query)
    labels, pair = _form(config.tasks[task])
    if labels not in (None, len(probe.verbalisers)):
        raise MaskLabError(
            f"config: probes.{name}.verbalisers: {len(probe.verbalisers)} words; {task!r} has {labels} labels"
        )
    if pair is False and "{b}" in probe.query:
        raise MaskLabError(f"config: probes.{name}.query: {{b}} is a second text, and {task!r} has one text a row")


def _form(task) -> tuple[int | None, bool | None]:
    """(labels, whether rows are pairs) of a labelled task, as far as its entry says."""
    if task.kind == "glue":
        return (3 if task.task == "mnli" else 2), task.task not in ("cola", "sst2")
    if task.kind == "english-labels":
        return 2, task.recipe in ("entailment", "paraphrase")
    return None, (task.text_b is not None if task.kind in ("label-files", "babylm-labels") else None)


def _check_replaced(config, name, probe, task):
    """Features are replaced where a task says which synsets they spell, one token each, in two forms."""
    entry = config.tasks[task]
    if entry.kind != "patterns" or law_entry(config, entry).features != "single":
        fitting = [
            other
            for other, own in config.tasks.items()
            if own.kind == "patterns" and law_entry(config, own).features == "single"
        ]
        raise MaskLabError(
            f"config: probes.{name}.tasks: {task!r} is no task of kind patterns whose features are single tokens; a"
            f" probe of kind replaced measures no other{listed(fitting, 6, 'such tasks')}"
        )
    for key in ("domain", "synonyms"):
        if (domain := getattr(probe, key)) not in DOMAINS:
            raise MaskLabError(f"config: probes.{name}.{key}: {domain!r} is no domain{listed(DOMAINS, what='domains')}")
    if probe.domain[2:] != probe.synonyms[2:]:
        raise MaskLabError(
            f"config: probes.{name}.synonyms: {probe.synonyms!r} does not spell the sequences of domain"
            f" {probe.domain!r}; its other form is {('B' if probe.domain[0] == 'A' else 'A') + probe.domain[1:]}"
        )
    if max(probe.spans) > entry.length:
        raise MaskLabError(
            f"config: probes.{name}.spans: {max(probe.spans)} is more synsets than a sequence of {task!r} has"
            f" ({entry.length})"
        )


def _either(words) -> str:
    return " or ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def positions(config, model) -> int:
    """Tokens that a recipe's encoder reads at most, [CLS] and [SEP] counted."""
    return config.encoders[config.models[model].encoder].max_positions


def check_length(config, probe, models):
    """A stated `max_length` is within the positions of one at least of the models that the probe measures."""
    if not models or "max_length" not in (config.raw.get("probes") or {}).get(probe, {}):
        return
    longest, most = config.probes[probe].max_length, max(positions(config, model) for model in models)
    if longest > most:
        key = f"encoders.{config.models[models[0]].encoder}.max_positions"
        raise MaskLabError(
            f"config: probes.{probe}.max_length: {longest} is more tokens than any model that it measures can read:"
            f" {key} is {positions(config, models[0])} for {models[0]!r}"
        )


def check_sizes(name, probe, task, rows: int):
    """A probe does not ask for more training rows of a task than it has."""
    if (sizes := getattr(probe, "sizes", None)) and max(sizes) > rows:
        raise MaskLabError(
            f"config: probes.{name}.sizes: {max(sizes)} is more than the {rows} training rows of {task!r}"
        )
