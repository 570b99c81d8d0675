"""Results of a study from the files of its jobs."""

from masklab.files import read_json
from masklab.scores import items
from masklab.scores.results import Results
from masklab.scores.schema import gather
from masklab.scores.view import View

DRAWS = 500  # resamplings of test items behind the intervals of claims


def load(view: View, scores, manifests=None, draws: int = 0) -> Results:
    """Results from score files and, to be resampled `draws` times, the item files beside them.

    manifests: (recipe, replicate) -> manifest.json. A broken file raises MaskLabError.
    Figures and tables do without items: all their recipes are measured on the same ones, whose choice moves them
    together, and intervals of each would make differences look less sure than they are.
    """
    scores = list(scores)
    table = items.gather(path for path in map(items.items_path, scores) if path.exists()) if draws else None
    models = {key: read_json(path).get("facts", {}) for key, path in (manifests or {}).items()}
    return Results(view, gather(scores), table, models, draws)
