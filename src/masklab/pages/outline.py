"""What the pages of a config are about, as plain data. Light, since the workflow asks while it is parsed."""

from masklab.studies import caption


def outline(config) -> dict:
    """`run`, and of every study what it asks, how large it is, its figures and tables with captions, has it claims.

    JSON-able: it is part of the params of the job that writes the pages.
    """
    return {"run": config.run, "studies": [_study(config, name) for name in config.studies]}


def _study(config, name):
    study = config.studies[name]
    return {
        "name": name,
        "title": study.title,
        "question": study.question,
        "scale": study.scale or config.scale,
        "figures": {item: caption(name, study, "figures", item) for item in study.figures},
        "tables": {item: caption(name, study, "tables", item) for item in study.tables},
        "claims": bool(study.claims),
    }
