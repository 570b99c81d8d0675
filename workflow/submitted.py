"""The config and the code as they were at submission.

A Slurm job reads both when it starts, which may be days after it was submitted. The Snakemake that submits leaves its
config in the environment, which jobs inherit, and the fingerprints of the code; a job stops if its own part of either
has changed by then.
"""

import base64
import json
import os
import zlib

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


def change(then, now, where: str = "") -> str | None:
    """`key: old value when submitted, new value now` of the first difference of two JSON-able values, or None."""
    if isinstance(then, dict) and isinstance(now, dict):
        for key in [*then, *(key for key in now if key not in then)]:
            difference = change(then.get(key), now.get(key), f"{where}.{key}".lstrip("."))
            if difference:
                return difference
        return None
    return None if then == now else f"{where or 'config'}: {then!r} when submitted, {now!r} now"
