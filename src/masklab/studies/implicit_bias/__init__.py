"""The wing of implicit_bias."""

FIGURES, TABLES = {}, {}


def claims(view):
    return []
