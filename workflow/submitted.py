"""The config and the code as they were at submission.

A Slurm job reads both when it starts, which may be days after it was submitted. The Snakemake that submits leaves its
config in the environment, which jobs inherit, and the fingerprints of the code; a job stops if its own part of either
has changed by then.
"""

import base64
import json
import os
import zlib

from masklab.jobs.changes import changes

VARIABLE = "MASKLAB_SUBMITTED"
CODE = "MASKLAB_SUBMITTED_CODE"


def remember(config: dict) -> None:
    """Leave the config for the jobs of this Snakemake."""
    _leave(VARIABLE, config)


def recall() -> dict | None:
    """The config of the Snakemake that submitted this job; None if nothing left one."""
    return _left(VARIABLE)


def remember_code(codes) -> None:
    """Leave the fingerprints of all parts of these `masklab.jobs.code.Code`s for the jobs of this Snakemake."""
    _leave(CODE, {name: mark for code in codes for name, mark in code.modules.items()})


def recall_code() -> dict[str, str] | None:
    """Part of the code -> its fingerprint at submission; None if nothing left them."""
    return _left(CODE)


def _leave(variable, value):
    packed = zlib.compress(json.dumps(value, default=str).encode(), 9)
    os.environ[variable] = base64.b64encode(packed).decode()


def _left(variable):
    packed = os.environ.get(variable)
    return None if packed is None else json.loads(zlib.decompress(base64.b64decode(packed)))


def change(then, now) -> str | None:
    """`key: old value when submitted, new value now` of the first difference of two JSON-able values, or None."""
    found = (f"{key or 'config'}: {old!r} when submitted, {new!r} now" for key, old, new in changes(then, now))
    return next(found, None)
