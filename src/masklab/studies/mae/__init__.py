"""The wing of mae."""

FIGURES, TABLES = {}, {}


def claims(view):
    return []
