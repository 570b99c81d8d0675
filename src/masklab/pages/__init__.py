"""The pages of results: what a run found, for a person who opens its folder."""

from pathlib import Path

TEMPLATES = Path(__file__).parent / "templates"
