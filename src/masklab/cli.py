"""`masklab`: what a person asks outside the workflow."""

import argparse
import sys
import time
from pathlib import Path

from masklab.errors import MaskLabError


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(prog="masklab", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="check a config file and say what it declares")
    check.add_argument("config", nargs="?", default="config.yaml")
    status = commands.add_parser("status", help="running and interrupted pre-training runs of this folder")
    status.add_argument("--watch", type=float, metavar="SECONDS", help="show again every so many seconds")
    commands.add_parser("tasks", help="recipes of generated labelled tasks, and phenomena of generated minimal pairs")
    schema = commands.add_parser("schema", help="write the JSON schema and the table of config keys")
    schema.add_argument("--root", default=".", help="checkout to write them in")
    options = parser.parse_args(arguments)
    try:
        COMMANDS[options.command](options)
    except MaskLabError as error:
        print(f"masklab: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # e.g. `masklab check | head`
        sys.stderr.close()
    return 0


def _check(options):
    from masklab.config import read

    config = read(options.config)
    for section in type(config).model_fields:
        value = getattr(config, section)
        print(f"{section:14}{', '.join(value) if isinstance(value, dict) else value}")


def _status(options):
    from masklab.training.status import table

    while True:
        print(table(Path("results")))
        if not options.watch:
            return
        time.sleep(options.watch)
        print("\033[2J\033[H", end="")


def _tasks(options):
    from masklab.corpora.english.labels import RECIPES
    from masklab.corpora.english.pairs import PHENOMENA

    for name, recipe in RECIPES.items():
        print(f"{name:36}{recipe.group:16}{recipe.description}")
    print(f"\nminimal pairs: {', '.join(PHENOMENA)}")


def _schema(options):
    from masklab.config.document import write

    write(Path(options.root))


COMMANDS = {"check": _check, "status": _status, "tasks": _tasks, "schema": _schema}

if __name__ == "__main__":
    sys.exit(main())
