import dataclasses
import json
import re

import pytest
from runs import make_run

from masklab.config import kinds
from masklab.config.schema import Dictionary, Objective
from masklab.errors import MaskLabError
from masklab.training.__main__ import main
from masklab.training.run import Run, read_run, write_run


def test_a_run_comes_back_from_json(english, tiny_encoder, tmp_path):
    run = make_run(english, tiny_encoder, tmp_path, objective=Objective(mlm=1, mlsm=0.5), micro_batch=7)
    write_run(run, tmp_path / "a.json")
    assert read_run(tmp_path / "a.json") == run
    more = {
        "init": tmp_path,
        "phase": 2,
        "codes": tmp_path,
        "tasks": {"t": tmp_path},
        "dictionary_config": Dictionary(model="m@1", layer=1),
    }
    full = Run(**vars(run) | more)
    write_run(full, tmp_path / "b.json")
    assert read_run(tmp_path / "b.json") == full


@pytest.mark.parametrize(
    "change,message",
    [
        ({"stepz": 3}, "stepz: unknown key; allowed: name, seed"),
        ({"tokens": None}, "tokens: missing"),
        ({"phase": "a"}, r"phase: must be a whole number \(got 'a'\)"),
        ({"tasks": [1]}, r"tasks: must be a mapping of names to folders \(got \[1\]\)"),
        ({"output": 5}, r"output: must be text \(got 5\)"),
        ({"objective": {"mlm": -1}}, "objective.mlm.weight: input should be greater than or equal to 0"),
    ],
)
def test_a_wrong_file_is_one_line_and_status_1(english, tiny_encoder, tmp_path, change, message, caplog):
    path = tmp_path / "run.json"
    write_run(make_run(english, tiny_encoder, tmp_path), path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(MaskLabError, match=message):
        read_run(path)
    assert main([str(path)]) == 1
    assert re.search(f"error: {path}: {message}", caplog.text)


MINE = """
from masklab import own

@own.term("mine", own.Weight)
class Mine(own.Term):
    def prepare(self, setup):
        {}
"""


@pytest.mark.parametrize(
    ("code", "said"), [("1 / 0", "ZeroDivisionError: division by zero"), ("exit(3)", "SystemExit: 3")]
)
def test_an_error_of_a_users_file_is_one_line_with_its_own(english, tiny_encoder, tmp_path, code, said, caplog):
    (tmp_path / "mine.py").write_text(MINE.format(code))
    kinds.load([tmp_path / "mine.py"])
    run = make_run(english, tiny_encoder, tmp_path, objective=Objective(mine=1))
    write_run(dataclasses.replace(run, code=(tmp_path / "mine.py",)), tmp_path / "run.json")
    assert main([str(tmp_path / "run.json")]) == 1
    kinds.load([])
    assert caplog.messages[-1] == f"error: {tmp_path}/mine.py:7: {said}"
