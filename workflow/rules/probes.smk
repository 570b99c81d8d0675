# model x probe x tasks -> scores; all scores -> scores.parquet.


rule probe:
    input:
        unpack(lambda w: paths.probe_inputs(w.study, w.probe, w.model, w.unit)),
        code=code("probe.py"),
    output:
        scores=R("scores/{study}/{probe}/{model}/{unit}.parquet"),
    log:
        R("logs/scores/{study}/{probe}/{model}/{unit}.log"),
    threads: settings.threads
    resources:
        gpu=cluster.gpus(),
        cpus_per_task=settings.threads,
    params:
        config=lambda w: paths.probe(w.study, w.probe, w.model, w.unit),
        models=lambda w: R("models", w.model),
        state=R("state/scores/{study}/{probe}/{model}/{unit}"),
    message:
        "probe {wildcards.probe} on {wildcards.model} ({wildcards.unit})"
    script:
        "../scripts/probe.py"


rule scores:
    input:
        scores=paths.all_scores(),
        code=code("scores.py"),
    output:
        parquet=R("scores.parquet"),
        csv=R("scores.csv"),
    log:
        R("logs/scores.log"),
    message:
        "all scores in one table"
    script:
        "../scripts/scores.py"
