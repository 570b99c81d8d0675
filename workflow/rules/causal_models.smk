# tokens of a text corpus -> a causal language model as a Hugging Face folder, for causal corpora.
# The folder lies beside the manifest; the state for resuming under state/ until the run succeeds.


rule causal_model:
    input:
        unpack(lambda w: paths.causal_model_inputs(w.causal)),
        code=code("causal_model.py"),
    output:
        manifest=R("causal_models/{causal}/manifest.json"),
    log:
        R("logs/causal_models/{causal}.log"),
    threads: settings.threads
    resources:
        gpu=cluster.gpus(),
        cpus_per_task=settings.threads,
    params:
        config=lambda w: paths.causal_model(w.causal),
        folder=lambda w: paths.causal_folder(w.causal),
        state=R("state/causal_models/{causal}"),
    message:
        "causal model {wildcards.causal}"
    script:
        "../scripts/causal_model.py"
