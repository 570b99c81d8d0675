"""Results of a study from the files of its jobs."""

from masklab.files import read_json
from masklab.scores import items
from masklab.scores.results import Results
from masklab.scores.schema import gather
from masklab.scores.view import View

DRAWS = 500  # resamplings of test items behind every interval


def load(view: View, scores, manifests=None, tasks=None, draws: int = DRAWS) -> Results:
    """Results from score files and the item files beside them.

    manifests: (recipe, replicate) -> manifest.json; tasks: name -> task.json. A broken file raises MaskLabError.
    """
    scores = list(scores)
    beside = [path for path in map(items.items_path, scores) if path.exists()]
    models = {key: read_json(path).get("facts", {}) for key, path in (manifests or {}).items()}
    files = {name: read_json(path) for name, path in (tasks or {}).items()}
    return Results(view, gather(scores), items.gather(beside), models, files, draws)
