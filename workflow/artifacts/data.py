"""Corpora, tokenizers, tokens, embeddings, exact conditionals, tasks, and the causal models behind some corpora."""

from pathlib import Path

from artifacts import Artifact, of_kind
from artifacts.training import WHOLE, files_of_model
from masklab.config import kinds, resolved
from masklab.config.references import OF_CORPUS, law_entry, named_law
from masklab.config.replicates import has_redrawn_law, split_instance
from masklab.config.sources import existing

# What transformers reads in a folder beside the files of a tokenizer, where it is there.
BESIDE = ("special_tokens_map.json", "added_tokens.json", "config.json")


class Drawn(Artifact):
    """A corpus or a task: drawn, or read from files."""

    section: str
    key: str  # of its settings among the parameters of a job

    def settings(self, **names):
        """With the law in place of its name, and the law's own seed where only the entry is drawn anew."""
        name, replicate = split_instance(names[self.key])
        entry = getattr(self.config, self.section)[name]
        settings = {"seed": self.paths.seed(replicate), self.key: _plain(resolved(self.config, entry))}
        if replicate is not None and named_law(entry) and not has_redrawn_law(self.config, entry):
            settings["law_seed"] = self.paths.seed(None)
        return settings

    def sources(self, name) -> dict:
        """{"sources": the user's files that an entry and its law are read from}, as far as they exist."""
        entry = getattr(self.config, self.section)[name]
        return {"sources": existing(entry) + existing(law_entry(self.config, entry))}

    def roots(self, **names):
        name, _ = split_instance(names[self.key])
        return of_kind(kinds.find(self.section, getattr(self.config, self.section)[name].kind))


def _plain(settings):
    """Settings without `redraw`, which the seed speaks for."""
    return {k: _plain(v) if isinstance(v, dict) else v for k, v in settings.items() if k != "redraw"}


class Corpus(Drawn):
    place, script = "corpora/{corpus}", "corpus.py"
    section, key = "corpora", "corpus"

    def inputs(self, corpus):
        name, replicate = split_instance(corpus)
        files, causal = self.sources(name), self._causal(name)
        if causal:
            files["model"] = self.paths.folder("causal_models", causal, replicate) + "/manifest.json"
        elif (entry := self.config.corpora[name]).kind == "causal":
            files["sources"] += files_of_model(entry.causal, WHOLE)
        return files

    def settings(self, corpus):
        settings, (name, replicate) = super().settings(corpus=corpus), split_instance(corpus)
        entry = self.config.corpora[name]
        if entry.kind == "causal":
            causal = self._causal(name)
            model = self.paths.folder("causal_models", causal, replicate) + "/model" if causal else entry.causal
            model = model.removeprefix(f"{self.paths.root}/")  # named alike in every run
            settings |= {"device": self.config.device, "model": model}
        return settings

    def _causal(self, name):
        """The entry of `causal_models` that a corpus is drawn from, if it is."""
        named = getattr(self.config.corpora[name], "causal", None)
        return named if named in self.config.causal_models else None


class CausalModel(Artifact):
    place, script = "causal_models/{causal}", "causal_model.py"

    def inputs(self, causal):
        name, replicate = split_instance(causal)
        model = self.config.causal_models[name]
        return {
            "tokens": self.paths.tokens(model.corpus, model.tokenizer, replicate),
            "tokenizer": self.paths.tokenizer(model.tokenizer, replicate),
        }

    def settings(self, causal):
        name, replicate = split_instance(causal)
        settings = self.config.causal_models[name].model_dump(mode="json", exclude={"save_minutes"})
        return self.paths.common(replicate) | {"causal_model": settings}


class Tokenizer(Artifact):
    place, script = "tokenizers/{tokenizer}", "tokenizer.py"

    def inputs(self, tokenizer):
        name, replicate = split_instance(tokenizer)
        entry = self.config.tokenizers[name]
        if entry.kind == "folder":
            beside = [Path(entry.folder) / name for name in BESIDE]
            return {"sources": existing(entry) + [str(file) for file in beside if file.is_file()]}
        return {"train": self.paths.folder("corpora", entry.corpus, replicate) + "/train.parquet"}

    def settings(self, tokenizer):
        name, replicate = split_instance(tokenizer)
        return {
            "seed": self.paths.seed(replicate),
            "tokenizer": self.config.tokenizers[name].model_dump(mode="json"),
        }


class Tokens(Artifact):
    place, script = "tokens/{corpus}/{tokenizer}", "tokens.py"

    def inputs(self, corpus, tokenizer):
        files = {
            split: self.paths.result("corpora", corpus, f"{split}.parquet") for split in ("train", "valid", "test")
        }
        return files | {"tokenizer": self.paths.result("tokenizers", tokenizer, "tokenizer.json")}

    def settings(self, corpus, tokenizer):
        name, _ = split_instance(tokenizer)
        return {"max_length": self.config.tokenizers[name].max_length}


class Embeddings(Artifact):
    place, script = "embeddings/{embeddings}/r{replicate}", "embeddings.py"

    def inputs(self, embeddings, replicate):
        entry = self.config.embeddings[embeddings]
        return {"tokens": self.paths.tokens(entry.corpus, entry.tokenizer, int(replicate))}

    def settings(self, embeddings, replicate):
        settings = self.config.embeddings[embeddings].model_dump(mode="json")
        return {"seed": self.paths.seed(int(replicate)), "embeddings": settings}


class Conditionals(Artifact):
    """Exact conditionals of the test sequences of a corpus with a known law, once for the loss probes of all models."""

    place, script = "conditionals/{corpus}/{tokenizer}/{sequences}-{positions}", "conditionals.py"

    def inputs(self, corpus, tokenizer, sequences, positions):
        return {"tokens": self.paths.result("tokens", corpus, tokenizer, "meta.json")}

    def settings(self, corpus, tokenizer, sequences, positions):
        replicates = split_instance(corpus)[1], split_instance(tokenizer)[1]
        return {"seed": self.paths.seed(next((k for k in replicates if k is not None), None))}

    def roots(self, corpus, tokenizer, sequences, positions):
        return kinds.find("corpora", self.config.corpora[split_instance(corpus)[0]].kind).modules


class Task(Drawn):
    place, script = "tasks/{task}", "task.py"
    section, key = "tasks", "task"

    def inputs(self, task):
        """Besides user files: a corpus whose words or law it takes, and another task whose texts."""
        name, replicate = split_instance(task)
        entry, files = self.config.tasks[name], self.sources(name)
        if entry.kind == "restricted-labels":
            files["task"] = self.paths.task(entry.task, replicate)
        if entry.kind in OF_CORPUS:
            files["corpus"] = self.paths.folder("corpora", entry.corpus, replicate) + "/test.parquet"
        return files
