"""A few lines in the formats of the files that docs/real-text.md speaks of."""

import json
import re
from pathlib import Path

TEXT = "".join(
    f"the {a} sees a {b} that runs far from here .\n" for a in "abcdefghijklmnop" for b in "abcdefghijklmnop"
)
PAIRS = [
    {"sentence_good": f"The cats {n} run.", "sentence_bad": f"The cats {n} runs.", "linguistics_term": "agreement"}
    for n in range(8)
]


def lay_down(text: str, folder: Path) -> str:
    """Write the files below /data/ that a text names below `folder`; the text with these in their place."""
    for name in dict.fromkeys(re.findall(r"/data/[\w/.*-]+", text)):
        path = folder / name.replace("*", "lines").lstrip("/")
        if path.name in FOLDERS:
            FOLDERS[path.name](path)
        elif path.suffix:
            _write(path)
        else:
            for split in ("train", "dev", "dev_matched", "dev_mismatched"):
                _write(path / f"{split}.tsv")
    return text.replace("/data/", f"{folder}/data/")


def _filter_data(folder: Path):
    """BabyLM's evaluation data of 2023: a file or two of each kind."""
    labels = [{"sentence": f"The cat runs {n}.", "label": n % 2, "condition": "test"} for n in range(8)]
    for start in ("glue_filtered/cola", "msgs_filtered/main_verb_lexical_content_the"):
        for split in ("train", "validation"):
            _write_lines(folder / f"{start}.{split}.json", labels)
    _write_lines(folder / "blimp_filtered/binding.json", PAIRS)


def _model(folder: Path):
    """What is looked at of a model's folder before anything runs."""
    sizes = {"model_type": "bert", "hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2}
    roles = {f"{role}_token": f"[{role.upper()}]" for role in ("cls", "sep", "unk", "pad", "mask")}
    for name, content in (("config", sizes), ("tokenizer", {"model": {}}), ("tokenizer_config", roles)):
        _write_lines(folder / f"{name}.json", [content])


FOLDERS = {"filter-data": _filter_data, "bert": _model, "exported": lambda folder: None}


def _write_lines(path: Path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _write(path: Path):
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".jsonl":
        rows = PAIRS
    elif path.suffix == ".tsv" and path.parent.name == "SST-2":
        path.write_text("sentence\tlabel\n" + "".join(f"The cat runs {n}.\t{n % 2}\n" for n in range(8)))
        return
    elif path.suffix == ".tsv":
        labels = ("entailment", "not_entailment") if path.parent.name == "rte" else ("entailment", "neutral")
        header = "index\tsentence1\tsentence2\t" + ("label" if path.parent.name == "rte" else "gold_label")
        path.write_text(
            "\n".join([header, *(f"{n}\tThe cat runs.\tA cat {n}.\t{labels[n % 2]}" for n in range(8))]) + "\n"
        )
        return
    elif "squad" in path.parts:
        answer = {"text": "Rome", "answer_start": 10}
        asked = [
            {"question": f"Where? {n}", "answers": [answer] * (n % 2), "is_impossible": n % 2 == 0} for n in range(8)
        ]
        article = {"title": "Rome", "paragraphs": [{"context": "He was in Rome.", "qas": asked}]}
        path.write_text(json.dumps({"version": "v2.0", "data": [article]}))
        return
    elif path.name.startswith("wsc"):
        rows = [{"text": "She saw her.", "span1_text": "She", "span2_text": "her", "label": n % 2} for n in range(8)]
    elif path.suffix == ".json":
        rows = [{"sentence": f"The cat runs {n}.", "label": n % 2} for n in range(8)]
    else:
        path.write_text(TEXT * 9)
        return
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
