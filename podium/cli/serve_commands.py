"""The command that serves systems as models."""

import argparse
import sys
from functools import partial

from podium.cli.arguments import taken
from podium.cli.consent import agree_to_serving
from podium.cli.list_commands import whole_catalogue
from podium.harness.errors import UserError
from podium.harness.text import say


def serve_command(args: argparse.Namespace) -> int:
    """Serve models until a signal, or make a key for a client; return 0."""
    from podium.serving.access_keys import new_key
    from podium.serving.launch import EndpointRequest, serve_models

    if args.new_key:
        if args.keys is None:
            raise UserError("--new-key adds to a file of keys: name it with --keys FILE.")
        say(new_key(args.keys, args.new_key))
        say(f"{args.keys} has its digest; this is the only time it is shown.", file=sys.stderr)
        return 0
    if not args.system or args.log_dir is None:
        raise UserError("Name what is served with --system, and where with --log-dir.")
    agree_to_serving(args)
    request = taken(
        EndpointRequest,
        args,
        systems=tuple(args.system),
        allow_hosts=tuple(args.allow_host),
        deadline_s=args.deadline,
        grace_s=args.grace,
    )
    log = partial(say, file=sys.stderr, flush=True)
    serve_models(request, whole_catalogue(), say=partial(say, flush=True), log=log)
    return 0
