"""`masklab dictionary <folder> --text file`: a dictionary of any encoder's hidden states, and a page of it."""

from pathlib import Path

import torch
from safetensors.torch import save_file

from masklab.errors import MaskLabError
from masklab.files import atomic_folder
from masklab.jobs.progress import Progress
from masklab.properties.gathering import of_text
from masklab.properties.look import PAGE, look
from masklab.properties.similarity import WordNet
from masklab.sparse.dictionary import learn

BATCH = 400  # vectors of an iteration
LARGEST = 1e30  # penalty; all codes are empty long before it, and no axis shows what is infinite
DICTIONARY = "dictionary.safetensors"


def make(folder, text, output, layer, atoms, penalty, tokens, iterations, wordnet) -> str:
    """Learn, look and write; returns what was written, in words.

    Raises:
        MaskLabError: a number out of its range, a file or folder that cannot be read, fewer tokens than atoms, an
            `output` that holds something.
    """
    numbers = {"atoms": atoms, "penalty": penalty, "tokens": tokens, "iterations": iterations}
    for name, value in numbers.items():
        if not value > 0:  # nor is a nan
            raise MaskLabError(f"--{name}: {value}: must be above 0")
    if not penalty < LARGEST:
        raise MaskLabError(f"--penalty: {penalty:g}: must be below {LARGEST:g}")
    if tokens < 2:  # half of them are coded
        raise MaskLabError(f"--tokens: {tokens}: must be at least 2")
    if tokens < atoms:
        raise MaskLabError(f"--tokens: {tokens}: must be at least --atoms ({atoms})")
    output = Path(output)
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise MaskLabError(f"{output}: exists; --output names a new or an empty folder")
    if output.resolve() == Path.cwd():  # it would be replaced under the feet of whoever asks
        raise MaskLabError(f"{output}: is the folder that you are in; --output names another one, new or empty")
    if wordnet is not None:
        WordNet(wordnet)  # what is wrong with it is said before the work
    device = "cuda" if torch.cuda.is_available() else "cpu"
    words, states, layer = of_text(folder, text, layer, tokens, device=device, progress=Progress("reading", "tokens"))
    if len(states) < atoms:
        raise MaskLabError(
            f"{text}: {len(states)} tokens are too few for {atoms} atoms; lower --atoms or give more text"
        )
    if len(states) < 2:
        raise MaskLabError(f"{text}: 1 token is too few, even for one atom; give more text")
    how = (atoms, penalty, iterations, BATCH)
    learned = learn(states, *how, progress=Progress("dictionary", "iterations"), device=device)
    reading = Progress("reading with initial weights", "tokens")
    _, drawn, _ = of_text(folder, text, layer, tokens, device=device, progress=reading, untrained=True)
    untrained = drawn, learn(drawn, *how, progress=Progress("dictionary of those", "iterations"), device=device)
    settings = {"penalty": penalty, "solver": "exact", "iterations": iterations, "batch_size": BATCH}
    facts = [("encoder", str(folder)), ("text", str(text)), ("layer", layer), ("k", atoms), ("λ", f"{penalty:g}")]
    about = {"title": f"Dictionary of {Path(folder).resolve().name}, layer {layer}", "facts": facts, "note": ""}
    with atomic_folder(output) as made:
        save_file({"D": learned.contiguous()}, made / DICTIONARY)
        said = look(words, states, learned, settings, made, about, untrained, wordnet, Progress("looking", "steps"))
    dead = f"{said['dead']} of {atoms} atoms are dead"
    kept = f"{said['here']['nonzeros']:.1f} entries a code keep {said['here']['kept']:.3f} of a vector"
    return f"{output / PAGE}: {said['tokens']:,} tokens; {kept}; {dead}"
