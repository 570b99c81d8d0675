# tokens (-> teacher, dictionary, codes) -> one replicate of a recipe. Checkpoints lie beside the
# manifest as step-<n>/; the state for resuming lies under state/ until the run succeeds.


rule pretrain:
    input:
        unpack(needs("pretrain")),
    output:
        manifest=R("models/{recipe}/r{replicate}/manifest.json"),
        metrics=R("models/{recipe}/r{replicate}/metrics.parquet"),
    log:
        R("logs/models/{recipe}/r{replicate}.log"),
    priority: PRETRAINING
    threads: lambda w: settings.threads * settings.models[w.recipe].here
    resources:
        **cluster.asks("pretrain"),
        gpu=lambda w: cluster.gpus(settings.models[w.recipe]),
        gres=lambda w: cluster.gpus_of_each_node(settings.models[w.recipe]),
        nodes=lambda w: settings.models[w.recipe].nodes,
        tasks=lambda w: cluster.tasks(settings.models[w.recipe]),
        tasks_per_gpu=0,
        cpus_per_task=lambda w: settings.threads * settings.models[w.recipe].here,
        save_seconds=lambda w: round(60 * settings.models[w.recipe].save_minutes),
    params:
        config=settings_of("pretrain"),
        code=code_of("pretrain"),
        sources=sources_of("pretrain"),
        state=R("state/models/{recipe}/r{replicate}"),
    message:
        "pre-training {wildcards.recipe} r{wildcards.replicate}"
    script:
        "../scripts/pretrain.py"
