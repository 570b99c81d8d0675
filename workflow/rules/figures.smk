# scores -> tables, figures and claims; every one of them is also a target by its short name,
# e.g. `snakemake --cores all mlsm_figure3`.


rule table:
    input:
        unpack(needs("table")),
    output:
        parquet=R("tables/{study}/{table}.parquet"),
        csv=R("tables/{study}/{table}.csv"),
        markdown=R("tables/{study}/{table}.md"),
        html=report(
            R("tables/{study}/{table}.html"),
            caption="../report/table.rst",
            category="{study}",
            subcategory="Tables",
            labels=labels_of("tables"),
        ),
    log:
        R("logs/tables/{study}/{table}.log"),
    params:
        config=settings_of("table"),
        code=code_of("table"),
    message:
        "table {wildcards.table} of {wildcards.study}"
    script:
        "../scripts/table.py"


rule figure:
    input:
        unpack(needs("figure")),
    output:
        pdf=R("figures/{study}/{figure}.pdf"),
        png=report(
            R("figures/{study}/{figure}.png"),
            caption="../report/figure.rst",
            category="{study}",
            subcategory="Figures",
            labels=labels_of("figures"),
        ),
        parquet=R("figures/{study}/{figure}.parquet"),
        csv=R("figures/{study}/{figure}.csv"),
    log:
        R("logs/figures/{study}/{figure}.log"),
    params:
        config=settings_of("figure"),
        code=code_of("figure"),
    message:
        "figure {wildcards.figure} of {wildcards.study}"
    script:
        "../scripts/figure.py"


rule study_claims:
    input:
        unpack(needs("study_claims")),
    output:
        parquet=R("claims/{study}.parquet"),
        csv=R("claims/{study}.csv"),
        markdown=R("claims/{study}.md"),
        html=report(
            R("claims/{study}.html"),
            caption="../report/claims.rst",
            category="{study}",
            subcategory="Claims",
            labels={"what": "Claims", "shows": "Every claim with its effect, interval and verdict"},
        ),
    log:
        R("logs/claims/{study}.log"),
    params:
        config=settings_of("study_claims"),
        code=code_of("study_claims"),
    message:
        "claims of {wildcards.study}"
    script:
        "../scripts/claims.py"


rule claims:
    input:
        unpack(needs("claims")),
    output:
        multiext(R("claims"), parquet=".parquet", csv=".csv", markdown=".md"),
    log:
        R("logs/claims.log"),
    params:
        code=code_of("claims"),
        studies=list(settings.studies),
        others=lambda w: other_studies(paths.root, settings.studies, CLAIMED),
    message:
        "all claims in one table"
    script:
        "../scripts/all_claims.py"


rule facts:
    input:
        unpack(needs("facts")),
    output:
        parquet=R("facts.parquet"),
        csv=R("facts.csv"),
    log:
        R("logs/facts.log"),
    params:
        config=settings_of("facts"),
        code=code_of("facts"),
        studies=list(settings.studies),
        made=R("made"),
        others=lambda w: other_studies(paths.root, settings.studies),
    message:
        "facts of all recipes, tasks and corpora in one table"
    script:
        "../scripts/facts.py"


for study in settings.studies:

    rule:
        name:
            study
        input:
            paths.target(study),
        localrule: True

    for name, files in paths.items(study).items():

        rule:
            name:
                f"{study}_{name}"
            input:
                files,
            localrule: True
