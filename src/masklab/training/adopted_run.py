"""The run of a model made elsewhere: nothing is trained, it is adopted as its only checkpoint."""

from masklab.files import read_json, write_json
from masklab.models.adopt import adopt
from masklab.training.lookup_run import finish
from masklab.training.run import Run


def write_adopted(run: Run) -> None:
    """Leave in `run.output` what a finished run leaves: `step-0/`, `metrics.parquet` (one row) and `manifest.json`.

    Raises:
        MaskLabError: the folder holds no masked language model that can be read, or no tokenizer for it.
    """

    def save(folder, *, tokenizer_folder, metadata):
        parameters = adopt(run.encoder.folder, folder)
        made = read_json(folder / "masklab.json")
        write_json({"adopted": made["adopted"], **metadata}, folder / "masklab.json")
        return parameters

    finish(run, "model.safetensors", save)
