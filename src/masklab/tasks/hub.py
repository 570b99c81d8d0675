"""Data sets by name, through the package `datasets`, which downloads and keeps them."""

import pandas as pd

from masklab.errors import MaskLabError


def hub_split(dataset: str, config: str | None, split: str, where: str) -> pd.DataFrame:
    """Rows of one split of a data set on the Hugging Face hub; `where` names the key of the config in errors."""
    try:
        import datasets
    except ImportError:
        raise MaskLabError(
            f"{where}: {dataset} is read by name through the package `datasets`, which is not installed;"
            " pip install datasets, or name local files"
        ) from None
    try:
        return datasets.load_dataset(dataset, config, split=split).to_pandas()
    except Exception as error:  # of the network, of the hub, of the cache: many classes
        reason = " ".join(str(error).split())[:200]
        raise MaskLabError(
            f"{where}: cannot load {dataset} ({type(error).__name__}: {reason}); name local files"
        ) from None
