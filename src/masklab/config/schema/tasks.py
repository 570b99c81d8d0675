"""Entries of `tasks:`: a class of settings for each kind of labelled task and of minimal pairs."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from masklab.config import babylm
from masklab.config.schema.base import Count, Drawn, Kinds, Share
from masklab.config.schema.laws import Chains, Grammar, HiddenMarkov

Phenomenon = Literal[
    "anaphor_agreement", "argument_structure", "binding", "control_raising", "determiner_noun_agreement", "ellipsis",
    "filler_gap", "irregular_forms", "island_effects", "npi_licensing", "quantifiers", "subject_verb_agreement",
    "subject_aux_inversion",
]  # fmt: skip
Cell = str | int | float | bool
Recipe = Literal[
    "acceptability", "sentiment", "entailment", "paraphrase", "control_main_verb", "control_control_raising",
    "control_syntactic_category", "control_lexical_content", "control_relative_position", "main_verb_lexical_content",
    "main_verb_relative_position", "control_raising_lexical_content", "control_raising_relative_position",
    "syntactic_category_lexical_content", "syntactic_category_relative_position",
]  # fmt: skip


class EnglishPairs(Drawn):
    """Minimal pairs of the generated language, under BLiMP's phenomenon names."""

    kind: Literal["english-pairs"]
    pairs: Count = Field(200, description="Pairs per phenomenon.")
    phenomena: list[Phenomenon] = Field([], description="Subset of phenomena; empty: all.")
    seed: int = Field(1, ge=0)


class PairFiles(Drawn):
    """Minimal pairs from json lines: BLiMP's (sentence_good, sentence_bad, linguistics_term or the file's name, UID), EWoK's (Context1, Target1, Target2, Domain), entity tracking's (input_prefix, options, numops)."""

    kind: Literal["pair-files"]
    files: list[str] = Field(description="Files or globs.")
    group_by: Literal["phenomenon", "paradigm", "file"] = Field(
        "phenomenon",
        description="`phenomenon`: the `linguistics_term` of each line, EWoK's domain, else the file's name; `paradigm`: the `UID` of each line, else the same; `file`: one group per file.",
    )
    limit: Count | None = Field(None, description="At most this many pairs per file, drawn at random. None: all.")
    seed: int = Field(1, ge=0)


class BabylmPairs(PairFiles):
    """Minimal pairs of a BabyLM evaluation: the files that its release has in `folder`, read as `pair-files`, whose keys follow from `task` and `release` (the release's) unless they are said."""

    kind: Literal["babylm-pairs"]
    task: Literal["blimp", "supplement", "ewok", "entity-tracking"]
    folder: str = Field(description="The release's folder: `filter-data` of 2023, `evaluation_data/full_eval` of 2025.")
    release: Literal[2023, 2025] = 2023

    @model_validator(mode="before")
    @classmethod
    def _files(cls, value):
        return _released(value, babylm.pairs)


class EnglishLabels(Drawn):
    """A labelled task generated from the same grammar (GLUE's and MSGS's kinds)."""

    kind: Literal["english-labels"]
    recipe: Recipe = Field(description="Which task; `masklab tasks` says what each asks.")
    train: Count = 1000
    valid: Count = 300
    test: Count = 500
    metric: Literal["accuracy", "mcc", "f1"] = Field("accuracy", description="Metric reported and drawn.")
    seed: int = Field(1, ge=0)


class LabelFiles(Drawn):
    """A labelled task from json lines, TSV, CSV or Parquet."""

    kind: Literal["label-files"]
    train: str
    valid: str
    test: str | None = Field(None, description="Test file; None: the validation split doubles as test (BabyLM 2023).")
    text_a: str = Field(
        "sentence", description="Column of the (first) sentence, or a template such as 'Question: {question}'."
    )
    text_b: str | None = Field(None, description="Column or template of the second sentence. None: single sentences.")
    label: str = Field(
        "label",
        description="Column of the labels, words or whole numbers. In their order (of words, the alphabet's) they are the classes 0, 1 and so on.",
    )
    columns: list[str] | None = Field(None, description="Column names of files without a header line.")
    where: dict[Literal["train", "valid", "test"], dict[str, Cell | list[Cell]]] = Field(
        {},
        description="Rows that a split keeps: those with this value, or one of these, in each column named. One file can so be read whole for one purpose and in part for another: MSGS selects on all rows of its validation file and is scored on those with `{test: {condition: test}}`.",
    )
    metric: Literal["accuracy", "mcc", "f1"] = Field(
        "accuracy",
        description="Metric reported and drawn. `f1`: of two classes F1 of class 1, the later label (of `ham` and `spam` the latter) unless `positive` names the other; of more the mean over classes.",
    )
    positive: Cell | None = Field(
        None,
        description="With `metric: f1` and two labels: the one that F1 looks for, which becomes class 1; task.json names it. None: the later one.",
    )
    limit: Count | None = Field(None, description="At most this many training rows, drawn at random. None: all.")
    limit_held_out: Count | None = Field(
        None,
        description="At most this many rows of the validation split, drawn at random, and as many of the test split; the same ones where they are one file. None: all.",
    )
    seed: int = Field(1, ge=0)

    @model_validator(mode="after")
    def _looked_for(self):
        if self.positive is not None and self.metric != "f1":
            raise ValueError(f"positive: the label that F1 looks for; metric is {self.metric}, and must be f1 for it")
        return self


class BabylmLabels(LabelFiles):
    """A labelled task of a BabyLM evaluation, GLUE's or MSGS's: the files that its release has in `folder`, read as `label-files`, whose keys follow from `task` and `release` (the release's) unless they are said."""

    kind: Literal["babylm-labels"]
    task: Literal[(*babylm.TEXTS, *babylm.MSGS)]
    folder: str = Field(description="The release's folder: `filter-data` of 2023, `evaluation_data/full_eval` of 2025.")
    release: Literal[2023, 2025] = 2023

    @model_validator(mode="before")
    @classmethod
    def _files(cls, value):
        return _released(value, babylm.labels)


def _released(value, keys):
    """An entry of a BabyLM task with the keys that its files are read by, as far as it does not say them itself."""
    if not isinstance(value, dict):
        return value
    task, folder, release = (
        value.get(key, default) for key, default in (("task", ""), ("folder", ""), ("release", 2023))
    )
    if not (isinstance(task, str) and isinstance(folder, str) and release in babylm.RELEASES):
        task = ""  # the checks of single keys say what is wrong
    return keys(task, str(folder).rstrip("/") or "/", release) | value


class EnglishRatings(Drawn):
    """How alike are two sentences of the grammar, 0 to 5? (STS-B's kind)"""

    kind: Literal["english-ratings"]
    train: Count = 1000
    valid: int = Field(300, ge=2, description="Of one row no correlation is known.")
    test: int = Field(500, ge=2, description="As of `valid`.")
    metric: Literal["pearson", "spearman"] = Field("spearman", description="Metric reported and drawn.")
    seed: int = Field(1, ge=0)


class EnglishSpans(Drawn):
    """Questions about events told by the grammar, half of them without an answer (SQuAD 2.0's kind)."""

    kind: Literal["english-spans"]
    train: Count = 1000
    valid: Count = 300
    test: Count = 500
    metric: Literal["exact", "f1"] = Field("f1", description="Metric reported and drawn.")
    seed: int = Field(1, ge=0)


class GlueTask(Drawn):
    """One of GLUE's eight tasks, from its own files or by name through the package `datasets`."""

    kind: Literal["glue"]
    task: Literal["cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte"]
    folder: str | None = Field(
        None,
        description="Folder with GLUE's train.tsv and dev.tsv (MNLI: dev_matched.tsv, dev_mismatched.tsv). None: by name.",
    )
    limit: Count | None = Field(None, description="At most this many training rows, drawn at random. None: all.")
    seed: int = Field(1, ge=0)

    @property
    def own_metric(self) -> str:
        """GLUE's own metric of the task, which tables and claims report."""
        return {"cola": "mcc", "stsb": "spearman"}.get(self.task, "accuracy")

    @property
    def files(self) -> list[str]:
        """The files it is read from."""
        names = ("dev_matched.tsv", "dev_mismatched.tsv") if self.task == "mnli" else ("dev.tsv",)
        return [] if self.folder is None else [f"{self.folder}/{name}" for name in ("train.tsv", *names)]


class SquadTask(Drawn):
    """Answer spans in SQuAD's json format (2.0 with questions that have none), or SQuAD 2.0 by name."""

    kind: Literal["squad"]
    train: str | None = Field(None, description="json file. None: SQuAD 2.0 by name, through the package `datasets`.")
    valid: str | None = None
    test: str | None = Field(None, description="Test file; None: the validation split doubles as test.")
    metric: Literal["exact", "f1"] = Field("f1", description="Metric that the best model is chosen by.")
    limit: Count | None = Field(None, description="At most this many training questions, drawn at random. None: all.")
    seed: int = Field(1, ge=0)

    @model_validator(mode="after")
    def _both(self):
        if (self.train is None) != (self.valid is None):
            raise ValueError("train and valid are given together, or neither (by name)")
        return self


class PatternsTask(Drawn):
    """Does a sequence of synsets match one of the patterns? (Chiang & Yogatama 2023, section 4.2)

    A pattern is S* S1 S* S2 S* S3 S*: synsets of three sets occur in this order. Patterns, walks and
    test sets are drawn at (config seed, `seed`), so that tasks that differ in `mix` alone share them.
    """

    kind: Literal["patterns"]
    chains: str | Chains = Field(description="Entry of `chains`.")
    length: Count = Field(100, description="Synsets per sequence.")
    train: Count = Field(100_000, description="Training sequences of both domains together.")
    valid: Count = Field(10_000, description="Validation sequences of both domains together.")
    test: Count = Field(10_000, description="Test sequences per domain.")
    patterns: Count = Field(5, description="A sequence is positive if it matches any of them.")
    set_size: Count = Field(12, description="Synsets per set, drawn without replacement within a set.")
    mix: Share = Field(
        0.0,
        description="Share of B-D2 in training and validation; the rest is A-D1. Every first n rows have it, up to rounding.",
    )
    balanced: bool = Field(
        False,
        description="Half of the sequences of every domain are positive: walks of a class that is full are dropped, and patterns that fewer than 30 % or more than 70 % of the walks of a chain match are drawn again (released code: false).",
    )
    seed: int = Field(1, ge=0)


class HmmTask(Drawn):
    """Task-k: the hidden state at the k-th word of a sentence (Liu et al. 2023, A.1).

    Sentences are drawn at (config seed, seed of the model, `seed`): tasks that differ in `position` or `label` alone
    hold the same ones.
    """

    kind: Literal["hmm"]
    hmm: str | HiddenMarkov = Field(description="Entry of `hmms`.")
    position: Count = Field(description="k, counted from 1 (paper: 6 and 10).")
    label: Literal["map", "sampled"] = Field(
        "map", description="`map`: the most probable state given the words; `sampled`: the state that was drawn."
    )
    length: Count = Field(16, description="Words per sentence.")
    train: Count = Field(100_000, description="Training sentences (paper: 100,000 examples, splits not given).")
    valid: Count = Field(10_000, description="Validation sentences.")
    test: Count = Field(10_000, description="Test sentences.")
    seed: int = Field(1, ge=0, description="Seed of the sentences.")


class PcfgTask(Drawn):
    """Which non-terminal stands over the first words of a sentence? (Liu et al. 2023, appendix A.1)"""

    kind: Literal["pcfg"]
    grammar: str | Grammar = Field(description="Entry of `grammars`.")
    span: Count = Field(
        32,
        description="L, words of the span (paper: 32, 16, 8 in tasks A, B, C). From the longest sentence on: the whole sentence, whatever its length; below: of sentences of at least so many words.",
    )
    reading: Literal["marginal", "inside", "outside"] = Field(
        "marginal",
        description="Pr(s given the first words), up to a factor: `marginal`: their probability given s x the probability of s at the left edge; `inside`: without the latter (the authors' code); `outside`: given the whole sentence.",
    )
    train: Count = Field(80_000, description="Training sentences (paper: 100,000 in all).")
    valid: Count = Field(10_000, description="Validation sentences.")
    test: Count = Field(10_000, description="Test sentences.")
    min_length: Count = Field(5, description="Sentences of fewer words are drawn again (the authors' code: 5).")
    max_length: Count = Field(32, description="Sentences of more words are drawn again.")
    seed: int = Field(1, ge=0)


class NextWord(Drawn):
    """Which word does the causal model of a corpus expect at a place of a sentence, given the words before it?"""

    kind: Literal["next-word"]
    corpus: str = Field(description="Entry of `corpora` of kind `causal` that the sentences are like.")
    position: int = Field(
        ge=2,
        description="k, counted from 1: the label is the most probable k-th word, given those before it; no sentence has fewer words.",
    )
    train: Count = Field(10_000, description="Training sentences.")
    valid: Count = Field(1000, description="Validation sentences.")
    test: Count = Field(1000, description="Test sentences.")
    seed: int = Field(1, ge=0, description="Seed of the sentences.")


class RestrictedLabels(Drawn):
    """A labelled task of texts in the words of a causal corpus, for models that read the corpus."""

    kind: Literal["restricted-labels"]
    task: str = Field(
        description="Entry of `tasks` whose texts are taken, of a kind that holds labels: `english-labels`, `label-files`, `babylm-labels` or `glue`."
    )
    corpus: str = Field(description="Entry of `corpora` of kind `causal` whose words are kept.")
    unknown: Literal["drop", "unk"] = Field(
        "drop", description="Tokens that are no words: `drop`: left out; `unk`: become <unk>."
    )
    length: Count | None = Field(None, description="Tokens kept of a row. None: the length of the corpus.")


Task = Annotated[Drawn, Kinds("tasks")]
