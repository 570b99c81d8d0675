"""The landscape probe: slices through a checkpoint, and through the same model grown."""

import pytest
import torch

from checked_run import HEAD, run
from masklab.config.schema import Encoder, LandscapeProbe
from masklab.errors import MaskLabError
from masklab.models.checkpoint import save_checkpoint
from masklab.models.encoder import MaskedLM
from masklab.probes import Context
from masklab.scores.schema import rows_to_frame
from masklab.tokenizers import load_tokenizer

SIZES = {"positions": "absolute", "norm": "pre", "layers": 1, "hidden": 16, "heads": 2, "max_positions": 40}


@pytest.fixture(scope="module")
def folder(english, tmp_path_factory):
    found = tmp_path_factory.mktemp("model") / "step-0"
    vocabulary = load_tokenizer(english / "tokenizer").get_vocab_size()
    model = MaskedLM(Encoder(**SIZES, init_range=0.2), vocabulary, generator=torch.Generator().manual_seed(1))
    save_checkpoint(model, found, metadata={})
    return found


def measured(english, folder, **keys):
    small = {"directions": 2, "points": 5, "sentences": 60, "batch_size": 32, "gradients": 4}
    probe = LandscapeProbe(kind="landscape", **(small | keys))
    rows = run(Context(probe, folder, tokens=english / "tokens", name="landscape"))
    frame = rows_to_frame([HEAD | row for row in rows])
    assert (frame["metric"] == "loss").all() and (frame["n"] == 60).all() and (frame["split"] == "test").all()
    return frame.pivot(index="at", columns="layer", values="value")


def test_slices_meet_at_the_checkpoint(english, folder):
    found = measured(english, folder)
    assert list(found.columns) == [0, 1, 2]
    assert found[0].dropna().index.tolist() == pytest.approx([-0.5, -0.25, 0, 0.25, 0.5])
    assert found[1].dropna().index.tolist() == pytest.approx([-0.05, -0.025, 0, 0.025, 0.05])
    assert found.loc[0.0].nunique() == 1 and found[1].dropna().nunique() == 5
    assert found.equals(measured(english, folder))
    assert measured(english, folder, scale="filter")[1].dropna().index.max() == 0.5


def test_a_grown_model_has_the_same_loss_and_other_slices(english, folder):
    here, grown = measured(english, folder), measured(english, folder, width=48, layers=2)
    assert grown.loc[0.0].to_numpy() == pytest.approx(here.loc[0.0].to_numpy(), abs=1e-5)
    assert (grown[1] - here[1]).dropna().abs().max() > 1e-3


def test_what_cannot_grow_is_refused(english, folder):
    with pytest.raises(MaskLabError, match=r"probes.landscape.width: 40 is not a multiple of the encoder's 16"):
        measured(english, folder, width=40)
    with pytest.raises(ValueError, match="must be odd"):
        LandscapeProbe(kind="landscape", points=4)
