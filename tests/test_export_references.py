"""What `masklab export` says of folders that are no checkpoint."""

import pytest

from masklab.errors import MaskLabError
from masklab.export import export


@pytest.mark.parametrize(
    ("folder", "has"),
    [
        ("m", "r1/step-20, r1/step-100, r2/step-20, r10/step-20"),
        ("m/r1", "step-20, step-100"),
    ],
)
def test_of_a_folder_of_a_recipe_the_checkpoints_in_it_are_named(folder, has, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for step in ("r1/step-100", "r1/step-20", "r10/step-20", "r2/step-20"):
        (tmp_path / "results/models/m" / step).mkdir(parents=True)
    (tmp_path / "results/models/notes.txt").touch()
    with pytest.raises(MaskLabError) as caught:
        export(f"results/models/{folder}", "out")
    assert str(caught.value) == f"results/models/{folder}: no checkpoint: no config.json; it has {has}"
    with pytest.raises(MaskLabError, match=r"n: no finished model in results/models/n/r1; recipes there: m$"):
        export("n", "out")
    assert not (tmp_path / "out").exists()
