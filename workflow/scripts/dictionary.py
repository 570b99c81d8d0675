"""Learn a sparse-coding dictionary of a checkpoint's hidden states."""

from pathlib import Path

from _job import checkpoint, device, job

with job(snakemake):
    import os

    from safetensors.torch import save_file

    from masklab.config.schema import Dictionary
    from masklab.files import atomic, read_json, sha256, write_json
    from masklab.jobs.progress import Progress
    from masklab.jobs.state import done, locked
    from masklab.models.checkpoint import load_checkpoint
    from masklab.sparse.dictionary import learn
    from masklab.sparse.quality import describe
    from masklab.sparse.states import sample_states
    from masklab.tokens import TokenStore

    params, name = snakemake.params.config, snakemake.wildcards.dictionary
    config, place = Dictionary(**params["dictionary"]), device(params["device"])
    seed = params["seed"]
    folder = checkpoint(snakemake.input.manifest, config.model)
    model = load_checkpoint(folder).to(place)
    store = TokenStore(Path(snakemake.input.tokens).parent, "train")
    unseen = 20 * config.batch_size  # tokens that it is described on
    asked, state = config.sample + unseen, snakemake.params.state
    made_of = {"params": params, "weights": sha256(folder / "model.safetensors")}
    with locked(state) as held:
        read = Progress(f"dictionary {name}, states", "tokens", folder=state)
        states = sample_states(model, store, config.layer, asked, config.draw, seed, place, read)
        states, rest = states[: config.sample], states[config.sample :]
        learned = learn(
            states,
            config.atoms,
            config.penalty,
            config.iterations,
            config.batch_size,
            seed,
            config.backend,
            Progress(f"dictionary {name}", "iterations", folder=state),
            threads=int(os.environ["OMP_NUM_THREADS"]),
            device=place,
            state_folder=Path(state),
            fingerprint=made_of | {"tokens": read_json(snakemake.input.tokens)},
        )
        with atomic(snakemake.output.dictionary) as temporary:
            save_file({"D": learned.cpu().contiguous()}, temporary)
        # a corpus with no more tokens than `sample` leaves none that it was not learned from
        facts = describe(rest if len(rest) else states[:unseen], learned, config.penalty, config.solver)
        facts = {"config": params["dictionary"], "seed": params["seed"], "held_out": len(rest) > 0, **facts}
        write_json(facts, snakemake.output.facts)
        done(held)
