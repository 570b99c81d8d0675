"""Pre-trained models, dictionaries of their hidden states, codes of a corpus under a dictionary."""

from pathlib import Path

from artifacts import Artifact, of_kind
from masklab import wordnet
from masklab.config import kinds
from masklab.config.masks import masks_called, masks_of, name_of
from masklab.config.references import phase, recipe_of_dictionary
from masklab.config.replicates import dictionary_of, trained_replicates
from masklab.config.sources import existing
from masklab.errors import MaskLabError

DECIDES = (".safetensors", ".json", ".txt", ".model")  # suffixes of what a model made elsewhere is read from
WHOLE = (*DECIDES, ".bin", ".spm")  # ... where transformers reads it, by weights and tokenizers of any kind
COPIED = "masklab.models.modeling_masklab"  # into checkpoints; never imported


class Pretrain(Artifact):
    place, script = "models/{recipe}/r{replicate}", "pretrain.py"

    def inputs(self, recipe, replicate):
        model, k = self.config.models[recipe], int(replicate)
        objective, paths = self.config.objectives[model.objective], self.paths
        files = {
            "tokens": paths.tokens(model.corpus, model.tokenizer, k),
            "tokenizer": paths.tokenizer(model.tokenizer, k),
        }
        if model.embeddings:
            files["embeddings"] = paths.folder("embeddings", model.embeddings, k) + "/vectors.npy"
        for key in ("init", "teacher"):
            if reference := getattr(model, key):
                files[key] = paths.manifest(reference, k)
        own = files_of_model(self.config.encoders[model.encoder].folder) if model.folder else []
        own += [file for term in objective.terms.values() for file in existing(term)]  # of a user's kind
        files |= {"sources": own} if own else {}
        if objective.tasks:
            files["tasks"] = [paths.task(task, k) for task in objective.tasks]
        if dictionary := dictionary_of(self.config, recipe):
            files["dictionary"] = paths.dictionary(dictionary, k)
            if codes := codes_of(paths, recipe, k):
                files["codes"] = codes
        return files

    def settings(self, recipe, replicate):
        model, dictionary = self.config.models[recipe], dictionary_of(self.config, recipe)
        return self.paths.common(int(replicate)) | {
            "model": model.model_dump(mode="json", exclude={"replicates", "save_minutes"}),  # which decide nothing
            "encoder": self.config.encoders[model.encoder].model_dump(mode="json"),
            "objective": self.config.objectives[model.objective].model_dump(mode="json"),
            "dictionary": dictionary and coding(self.config, dictionary),
            "phase": phase(self.config, recipe),
        }

    def roots(self, recipe, replicate):
        terms = self.config.objectives[self.config.models[recipe].objective].terms
        return [COPIED, *(part for name in terms for part in of_kind(kinds.find("terms", name)))]


def files_of_model(folder, suffixes=DECIDES) -> list[str]:
    """What decides a model that was made elsewhere: weights, config and tokenizer; none of a name on the hub."""
    return [str(file) for file in _files(Path(folder).expanduser()) if file.suffix in suffixes]


def files_of_wordnet(folder) -> list[str]:
    """The files of a WordNet database; none where there is none, which whoever reads it says."""
    try:
        place = wordnet.place_of(folder)
    except MaskLabError:
        return []
    return list(map(str, _files(place)))


def _files(folder) -> list[Path]:
    """The files in a folder but for hidden ones."""
    return [file for file in sorted(folder.glob("*")) if file.is_file() and not file.name.startswith(".")]


def codes_of(paths, recipe: str, replicate: int) -> str | None:
    """The codes that a recipe reads from disk; None: it reads none, or computes them itself."""
    model, dictionary = paths.config.models[recipe], dictionary_of(paths.config, recipe)
    if not dictionary or model.codes == "on-the-fly":
        return None
    masks = name_of(masks_of(paths.config, recipe)) if model.codes == "masked" else None
    return paths.codes(dictionary, replicate, masks)


def coding(config, dictionary: str) -> dict:
    """Settings of a dictionary that its codes depend on."""
    return config.dictionaries[dictionary].model_dump(mode="json", exclude={"wordnet"})


class Dictionary(Artifact):
    place, script = "dictionaries/{dictionary}/r{replicate}", "dictionary.py"

    def inputs(self, dictionary, replicate):
        reference, k = self.config.dictionaries[dictionary].model, int(replicate)
        model = self.config.models[recipe_of_dictionary(self.config, dictionary)]
        return {
            "manifest": self.paths.manifest(reference, k),
            "tokens": self.paths.tokens(model.corpus, model.tokenizer, k),
        }

    def settings(self, dictionary, replicate):
        return self.paths.common(int(replicate)) | {"dictionary": coding(self.config, dictionary)}


class Codes(Dictionary):
    place, script = "codes/{dictionary}/r{replicate}", "codes.py"

    def inputs(self, dictionary, replicate):
        files = super().inputs(dictionary, replicate)
        return files | {"dictionary": self.paths.dictionary(dictionary, int(replicate))}


class MaskedCodes(Codes):
    place, script = "codes/{dictionary}/{masks}/r{replicate}", "masked_codes.py"

    def inputs(self, dictionary, masks, replicate):
        recipe = recipe_of_dictionary(self.config, dictionary)
        tokenizer = self.paths.tokenizer(self.config.models[recipe].tokenizer, int(replicate))
        own = self._own(dictionary, masks)
        return super().inputs(dictionary, replicate) | {"tokenizer": tokenizer} | ({"sources": own} if own else {})

    def settings(self, dictionary, masks, replicate):
        return super().settings(dictionary, replicate) | {"masks": masks_called(self.config, dictionary, masks)}

    def roots(self, dictionary, masks, replicate):
        reader = masks_called(self.config, dictionary, masks)["reader"]
        return of_kind(kinds.find("terms", reader["term"])) if reader else []

    def _own(self, dictionary, masks) -> list[str]:
        """The user's files that the term reads which hides tokens in its own way."""
        reader = masks_called(self.config, dictionary, masks)["reader"]
        if not reader:
            return []
        return existing(kinds.find("terms", reader["term"]).entity().model_validate(reader["settings"]))


class DictionaryPage(Artifact):
    """What a dictionary says, of its first replicate."""

    place, script = "dictionaries/{dictionary}", "dictionary_page.py"
    ends = ("/index.html", "/properties.parquet", "/properties.csv")
    REPLICATE = 1

    def inputs(self, dictionary):
        recipe = recipe_of_dictionary(self.config, dictionary)
        files = self.paths.inputs("dictionary", dictionary=dictionary, replicate=self.REPLICATE)
        tokenizer = self.paths.tokenizer(self.config.models[recipe].tokenizer, self.REPLICATE)
        files |= {"tokenizer": tokenizer, "dictionary": self.paths.dictionary(dictionary, self.REPLICATE)}
        folder = self.config.dictionaries[dictionary].wordnet
        return files | ({"sources": files_of_wordnet(folder)} if folder else {})

    def settings(self, dictionary):
        wordnet = self.config.dictionaries[dictionary].wordnet
        trained = trained_replicates(self.config)[recipe_of_dictionary(self.config, dictionary)]
        settings = {"dictionary": coding(self.config, dictionary), "wordnet": wordnet, "replicates": trained}
        return self.paths.common(self.REPLICATE) | settings
