"""The one exception a user is meant to read."""


def in_one_line(error: BaseException, most: int = 300) -> str:
    """What an error of a library says, without its line breaks and endless lists; its name if it says nothing."""
    return " ".join(str(error).split())[:most] or type(error).__name__


def listed(names) -> str:
    """Names of a user's file in one line: what no line could show is shown as Python spells it."""
    spelled = ("".join(c if c.isprintable() else repr(c)[1:-1] for c in str(name)) for name in names)
    return ", ".join(spelled)


class MaskLabError(Exception):
    """Bad input, described in one line: which key, file or row, what was wrong, what is allowed.

    Scripts and the command line print the message alone and exit with status 1;
    every other exception is a bug and keeps its traceback. Mistakes of a config come several at once, a line each.
    """

    @property
    def said(self) -> str:
        """What is printed: each line says who speaks."""
        return "\n".join(f"masklab: {line}" for line in str(self).splitlines())


class Passing(MaskLabError):
    """A run that ended early for a reason that another attempt may not meet: a signal, another process in its folder, a
    lost node. A cluster may start it again; after any other MaskLabError the same job would fail in the same way.
    """
