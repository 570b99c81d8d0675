"""Reading a causal model of the Hugging Face hub, or of a folder in its format."""

from pathlib import Path

from masklab.errors import MaskLabError, in_one_line
from masklab.files import fingerprint, sha256
from masklab.jobs.lacking import lacking


def load(model, device="cpu", dtype="float32"):
    """(AutoModelForCausalLM in eval mode on `device`, its AutoTokenizer) of a folder or hub id, whose code is not run.

    MaskLabError in one line if there is none, if it cannot be read, or if it lacks weights.
    """
    from transformers import AutoModelForCausalLM

    quiet()
    try:
        causal, found = AutoModelForCausalLM.from_pretrained(
            str(model), dtype=dtype, trust_remote_code=False, output_loading_info=True
        )
    except Exception as error:  # of any kind: no such folder or id, no network, no causal model, broken weights
        if lacking(error):  # memory, rights: no fault of the model
            raise
        raise MaskLabError(f"{model}: no causal language model ({in_one_line(error)})") from None
    if missing := sorted(found["missing_keys"]):  # which would be drawn at random
        raise MaskLabError(f"{model}: has no weights for {missing[0]} of its {type(causal).__name__}")
    return causal.eval().to(device), load_tokenizer(model)


def load_tokenizer(model):
    """The AutoTokenizer of a folder or hub id."""
    from transformers import AutoTokenizer

    try:
        return AutoTokenizer.from_pretrained(str(model), trust_remote_code=False)
    except Exception as error:  # of any kind: bare ones of the Rust library, too
        raise MaskLabError(f"{model}: no tokenizer ({in_one_line(error)})") from None


def quiet():
    """Keep transformers' own progress bars out of our logs."""
    from transformers.utils import logging

    logging.disable_progress_bar()


def found(law: dict) -> str:
    """Folder or hub id of the causal model that the header of a corpus names under `law`.

    A model that the workflow trains is named by its place in a folder of results, so that runs can share the corpus;
    any folder below `results/` that holds its very weights will do.

    Raises:
        MaskLabError: the folder is gone, or its weights are not those that the corpus was drawn from.
    """
    model = law["model"]
    if not law["local"]:
        return model
    places = [Path(model), Path("results", model), *sorted(Path("results").glob(f"*/{model}"))]
    there = [place for place in places if place.is_dir()]
    if not there:
        raise MaskLabError(f"{model}: no such folder; the law of the corpus is that of the model in it")
    for place in there:
        if weights_of(place) == law["weights"]:
            return str(place)
    raise MaskLabError(f"{model}: its weights are not those that the corpus was drawn from")


def weights_of(model, causal=None) -> str:
    """What identifies these weights: the hash of a folder's weight files, or the commit of a hub id."""
    folder = Path(model)
    if folder.is_dir():
        files = sorted([*folder.glob("*.safetensors"), *folder.glob("*.bin")])
        return fingerprint([sha256(file) for file in files])
    return str(getattr(causal.config, "_commit_hash", None))
