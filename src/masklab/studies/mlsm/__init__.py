"""The wing of mlsm."""

FIGURES, TABLES = {}, {}


def claims(view):
    return []
