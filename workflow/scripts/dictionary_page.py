"""Write down what a dictionary says: its properties, their words in context, how coherent they are."""

from pathlib import Path

from _job import checkpoint, job

with job(snakemake):
    from safetensors.torch import load_file

    from masklab.config.schema import Dictionary
    from masklab.models.checkpoint import load_checkpoint
    from masklab.models.initial import initial
    from masklab.properties.gathering import of_arrays
    from masklab.properties.look import look
    from masklab.sparse.dictionary import learn
    from masklab.tokenizers import load_tokenizer
    from masklab.tokens import TokenStore

    params, files, name = snakemake.params.config, snakemake.input, snakemake.wildcards.dictionary
    config = Dictionary(**params["dictionary"])
    store = TokenStore(Path(files.tokens).parent, "train")
    model, tokenizer = (
        load_checkpoint(checkpoint(files.manifest, config.model)),
        load_tokenizer(Path(files.tokenizer).parent),
    )
    words, states = of_arrays(model, store, tokenizer, config.layer, seed=params["seed"])
    settings = {key: getattr(config, key) for key in ("penalty", "solver", "iterations", "batch_size")}
    facts = [("model", config.model), ("layer", config.layer), ("k", config.atoms), ("λ", f"{config.penalty:g}")]
    several = (
        f"Replicate 1 of {params['replicates']}: each has a dictionary of its own." if params["replicates"] > 1 else ""
    )
    about = {"title": f"Dictionary {name}", "facts": facts, "note": several}
    dictionary = load_file(files.dictionary)["D"]
    _, drawn = of_arrays(initial(model, params["seed"]), store, tokenizer, config.layer, seed=params["seed"])
    untrained = drawn, learn(drawn, config.atoms, config.penalty, config.iterations, config.batch_size, params["seed"])
    folder = Path(snakemake.output.page).parent
    look(words, states, dictionary, settings, folder, about, untrained, params["wordnet"])
