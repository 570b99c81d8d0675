# tokens (-> teacher, dictionary, codes) -> pre-trained model. Checkpoints lie beside the
# manifest as step-<n>/; the state for resuming lies under state/ until the run succeeds.


rule pretrain:
    input:
        unpack(lambda w: paths.model_inputs(w.model)),
        code=lambda w: code("pretrain.py", *paths.model_code(w.model)),
    output:
        manifest=R("models/{model}/manifest.json"),
        metrics=R("models/{model}/metrics.parquet"),
    log:
        R("logs/models/{model}.log"),
    threads: lambda w: settings.threads * settings.models[w.model].here
    resources:
        gpu=lambda w: cluster.gpus(settings.models[w.model]),
        gres=lambda w: cluster.gpus_of_each_node(settings.models[w.model]),
        nodes=lambda w: settings.models[w.model].nodes,
        tasks=lambda w: cluster.tasks(settings.models[w.model]),
        tasks_per_gpu=0,
        cpus_per_task=lambda w: settings.threads * settings.models[w.model].here,
    params:
        config=lambda w: paths.model(w.model),
        init=lambda w: paths.checkpoint(settings.models[w.model].init) if settings.models[w.model].init else None,
        state=R("state/models/{model}"),
    message:
        "pre-training {wildcards.model}"
    script:
        "../scripts/pretrain.py"
