"""`msdump schema mindspore|acl`: the JSON schema of a configuration, for editors and checks."""

from __future__ import annotations

import argparse
import json
import sys

from msdump.cli.exit_status import FINE

# The keys of `msdump.config.schema.SCHEMAS`, which takes pydantic to import.
NAMES = ("mindspore", "acl")
_EPILOG = """
VS Code     "json.schemas": [{"fileMatch": ["*dump*.json"], "url": "./mindspore.schema.json"}]   # in settings.json
command     check-jsonschema --schemafile mindspore.schema.json dump.json

A schema checks what can be checked without the machine; `msdump plan FILE` checks all of it.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    parser.description = "Print the JSON schema of a configuration: keys, values, defaults, and what they mean."
    parser.epilog = _EPILOG
    parser.add_argument(
        "name", choices=NAMES, help="mindspore: the file of MINDSPORE_DUMP_CONFIG. acl: acl.json, as pyACL takes it"
    )


def run(args: argparse.Namespace) -> int:
    """Print; the result is the exit status that `--help` explains."""
    from msdump.config.schema import SCHEMAS

    json.dump(SCHEMAS[args.name](), sys.stdout, indent=2)
    sys.stdout.write("\n")
    return FINE
