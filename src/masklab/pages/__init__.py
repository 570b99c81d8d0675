"""The pages of results: what a run found, for a person who opens its folder."""
