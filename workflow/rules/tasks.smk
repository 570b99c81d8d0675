# user files, the grammar, a law or another task -> a task in one format.


rule task:
    input:
        unpack(needs("task")),
    output:
        facts=R("tasks/{task}/task.json"),
        test=R("tasks/{task}/test.parquet"),
    log:
        R("logs/tasks/{task}.log"),
    priority: BEFORE_PRETRAINING
    resources:
        **cluster.asks("task"),
    params:
        config=settings_of("task"),
        code=code_of("task"),
        sources=sources_of("task"),
    message:
        "task {wildcards.task}"
    script:
        "../scripts/task.py"
