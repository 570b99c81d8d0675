# user files, the grammar, a law or another task -> a task in one format.


rule task:
    input:
        unpack(lambda w: paths.task_inputs(w.task)),
        sources=lambda w: paths.sources("tasks", w.task),
        code=code("task.py"),
    output:
        facts=R("tasks/{task}/task.json"),
        test=R("tasks/{task}/test.parquet"),
    log:
        R("logs/tasks/{task}.log"),
    params:
        config=lambda w: paths.entity("tasks", w.task),
    message:
        "task {wildcards.task}"
    script:
        "../scripts/task.py"
