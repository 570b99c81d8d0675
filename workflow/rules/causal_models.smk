# tokens of a text corpus -> a causal language model as a Hugging Face folder, for causal corpora.
# The folder lies beside the manifest; the state for resuming under state/ until the run succeeds.


rule causal_model:
    input:
        unpack(needs("causal_model")),
    output:
        manifest=R("causal_models/{causal}/manifest.json"),
    log:
        R("logs/causal_models/{causal}.log"),
    priority: BEFORE_PRETRAINING
    threads: settings.threads
    resources:
        **cluster.asks("causal_model"),
        gpu=cluster.gpus(),
        cpus_per_task=settings.threads,
        save_seconds=lambda w: round(60 * settings.causal_models[w.causal.partition("/")[0]].save_minutes),
    params:
        config=settings_of("causal_model"),
        code=code_of("causal_model"),
        state=R("state/causal_models/{causal}"),
    message:
        "causal model {wildcards.causal}"
    script:
        "../scripts/causal_model.py"
