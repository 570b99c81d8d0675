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
        if path.suffix:
            _write(path)
        else:
            for split in ("train", "dev", "dev_matched", "dev_mismatched"):
                _write(path / f"{split}.tsv")
    return text.replace("/data/", f"{folder}/data/")


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
