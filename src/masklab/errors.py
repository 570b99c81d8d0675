"""The one exception a user is meant to read."""


class MaskLabError(Exception):
    """Bad input, described in one line: which key, file or row, what was wrong, what is allowed.

    Scripts and the command line print the message alone and exit with status 1;
    every other exception is a bug and keeps its traceback. Mistakes of a config come several at once, a line each.
    """

    @property
    def said(self) -> str:
        """What is printed: each line says who speaks."""
        return "\n".join(f"masklab: {line}" for line in str(self).splitlines())
