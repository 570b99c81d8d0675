"""Where the evaluation data of the BabyLM challenges lie, and how each task is read. Light: read with the config.

Releases: 2023 (json files, the folder `filter-data` of its pipeline), 2025 (jsonl files, `evaluation_data/full_eval`;
the data of 2024 lie in the same way). Sources: the pipelines, babylm/evaluation-pipeline-2023 at 17b3806
(`finetune_model.sh`, `finetune_classification.py`) and -2025 at bf55c11 (`read_files.py`, `finetune/dataset.py`).
"""

RELEASES = (2023, 2025)
# Task -> columns or templates of its two sentences.
TEXTS = {
    "boolq": ("question", "passage"),
    "cola": ("sentence", None),
    "mnli": ("premise", "hypothesis"),
    "mnli-mm": ("premise", "hypothesis"),
    "mrpc": ("sentence1", "sentence2"),
    "multirc": ("Question: {question} Answer: {answer}", "paragraph"),
    "qnli": ("question", "sentence"),
    "qqp": ("question1", "question2"),
    "rte": ("sentence1", "sentence2"),
    "sst2": ("sentence", None),
    "wsc": ('Does "{span2_text}" refer to "{span1_text}" in this passage?', "text"),
}
METRICS = {"cola": "mcc", "mrpc": "f1", "qqp": "f1"}  # the others: accuracy
MSGS = (
    "control_raising_control",
    "lexical_content_the_control",
    "main_verb_control",
    "relative_position_control",
    "syntactic_category_control",
    "control_raising_lexical_content_the",
    "control_raising_relative_token_position",
    "main_verb_lexical_content_the",
    "main_verb_relative_token_position",
    "syntactic_category_lexical_content_the",
    "syntactic_category_relative_position",
)
PAIRS = {"blimp": "blimp_filtered", "supplement": "supplement_filtered"}
PAIRS_2025 = PAIRS | {"ewok": "ewok_filtered", "entity-tracking": "entity_tracking"}
# Lines of the files as released: of 2023 as the task's own paper implies them, of 2025 those that the pipeline's
# `collate_preds.py` asks for. A file of another length is read, and its task.json says so.
LINES = {
    2023: {
        "blimp_filtered/anaphor_agreement.json": 1956, "blimp_filtered/argument_structure.json": 8248,
        "blimp_filtered/binding.json": 6738, "blimp_filtered/control_raising.json": 4526,
        "blimp_filtered/determiner_noun_agreement.json": 7542, "blimp_filtered/ellipsis.json": 1732,
        "blimp_filtered/filler_gap.json": 6426, "blimp_filtered/irregular_forms.json": 1965,
        "blimp_filtered/island_effects.json": 2676, "blimp_filtered/npi_licensing.json": 6586,
        "blimp_filtered/quantifiers.json": 3882, "blimp_filtered/subject_verb_agreement.json": 5535,
        "supplement_filtered/qa_congruence_easy.json": 64, "supplement_filtered/qa_congruence_tricky.json": 165,
        "supplement_filtered/subject_aux_inversion.json": 3867, "supplement_filtered/turn_taking.json": 280,
        "glue_filtered/boolq.train.json": 2072, "glue_filtered/boolq.validation.json": 723,
        "glue_filtered/cola.train.json": 8164, "glue_filtered/cola.validation.json": 1019,
        "glue_filtered/mnli.validation_matched.json": 6562, "glue_filtered/mnli.validation_mismatched.json": 6284,
        "glue_filtered/mrpc.train.json": 1579, "glue_filtered/mrpc.validation.json": 177,
        "glue_filtered/multirc.validation.json": 913, "glue_filtered/qnli.validation.json": 2286,
        "glue_filtered/rte.train.json": 858, "glue_filtered/rte.validation.json": 99,
        "glue_filtered/sst2.validation.json": 508, "glue_filtered/wsc.train.json": 487,
        "glue_filtered/wsc.validation.json": 83,
    },
    2025: {
        "supplement_filtered/hypernym.jsonl": 842, "supplement_filtered/qa_congruence_easy.jsonl": 64,
        "supplement_filtered/qa_congruence_tricky.jsonl": 165, "supplement_filtered/subject_aux_inversion.jsonl": 3867,
        "supplement_filtered/turn_taking.jsonl": 280, "entity_tracking/regular.jsonl": 3152,
        "entity_tracking/ambiref.jsonl": 3224, "entity_tracking/move_contents.jsonl": 3107,
        "glue_filtered/boolq.valid.jsonl": 1635, "glue_filtered/mnli.train.jsonl": 10000,
        "glue_filtered/mnli.valid.jsonl": 4908, "glue_filtered/mrpc.train.jsonl": 3668,
        "glue_filtered/mrpc.valid.jsonl": 204, "glue_filtered/multirc.valid.jsonl": 2424,
        "glue_filtered/qqp.train.jsonl": 10000, "glue_filtered/qqp.valid.jsonl": 20215,
        "glue_filtered/rte.train.jsonl": 2490, "glue_filtered/rte.valid.jsonl": 139,
        "glue_filtered/wsc.train.jsonl": 554, "glue_filtered/wsc.valid.jsonl": 52,
    },
}  # fmt: skip
BLIMP_2025, BLIMP_2025_FILES = 59875, 67  # pairs of all files, and how many these are


def labels(task: str, folder: str, release: int) -> dict:
    """The keys of `label-files` that a task of labels stands for; ValueError: the release does not have it."""
    if task not in TEXTS and task not in MSGS:
        return {"train": "", "valid": ""}  # the check of the key says what is wrong
    if task in MSGS:
        if release != 2023:
            raise ValueError(f"the release of {release} has no MSGS; release: 2023 does")
        start = f"{folder}/msgs_filtered/{task}"
        # Selected on all rows; scored on those where the linguistic and the surface feature part.
        where = {"test": {"condition": "test"}}
        return {**_files(start, "validation", "json"), "text_a": "sentence", "metric": "mcc", "where": where}
    if release == 2023:
        name = task.removesuffix("-mm")
        valid = {"mnli": "validation_matched", "mnli-mm": "validation_mismatched"}.get(task, "validation")
        files = _files(f"{folder}/glue_filtered/{name}", valid, "json")
    elif task == "mnli-mm":
        raise ValueError("the release of 2025 has no mismatched MNLI; release: 2023 does")
    else:
        files = _files(f"{folder}/glue_filtered/{task}", "valid", "jsonl")
    first, second = TEXTS[task]
    return {**files, "text_a": first, "text_b": second, "metric": METRICS.get(task, "accuracy")}


def _files(start: str, valid: str, suffix: str) -> dict:
    test = f"{start}.{valid}.{suffix}"
    return {"train": f"{start}.train.{suffix}", "valid": test, "test": test}


def pairs(task: str, folder: str, release: int) -> dict:
    """The keys of `pair-files` that a task of pairs stands for; ValueError: the release does not have it.

    BLiMP counts 12 phenomena in 2023 and 67 paradigms in 2025, the supplement its files, EWoK its domains, entity
    tracking its files by the number of operations.
    """
    known = PAIRS if release == 2023 else PAIRS_2025
    if task not in PAIRS_2025:
        return {"files": [""]}  # as above
    if task not in known:
        raise ValueError(f"the release of {release} has no {task}; it has {', '.join(known)}")
    suffix = "json" if release == 2023 else "jsonl"
    by = {"blimp": "phenomenon" if release == 2023 else "paradigm", "supplement": "file"}.get(task, "phenomenon")
    return {"files": [f"{folder}/{known[task]}/*.{suffix}"], "group_by": by}


def lines(release: int, file: str) -> int | None:
    """Lines that a file, by the end of its path, has in a release; None: not known."""
    return LINES[release].get("/".join(file.split("/")[-2:]))
