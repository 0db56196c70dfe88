"""A system as an Inspect model: `inspect eval TASK --model podium/SYSTEM -M pool=POOL`."""

from pathlib import Path

from podium.cli.list_commands import whole_catalogue
from podium.harness.errors import UserError
from podium.harness.pool_config import read_pool
from podium.harness.system_api import SystemAPI, SystemInPlay

KNOWN = ("pool", "learnt", "seed")


class NamedSystemAPI(SystemAPI):
    """An Inspect model whose replies come from a system; arguments: `pool`, `learnt` and `seed`."""

    def make(self) -> SystemInPlay:
        """Return the system; UserError if an argument is unknown or the system cannot answer."""
        from podium.serving.models import ModelSource, served_models

        arguments = self.arguments
        if unknown := sorted(arguments.keys() - set(KNOWN)):
            raise UserError(f"-M {unknown[0]} is unknown. Use one of: {', '.join(KNOWN)}.")
        if "pool" not in arguments:
            return SystemAPI.make(self)
        spec = read_pool(str(arguments["pool"]))
        learnt = Path(str(arguments["learnt"])) if "learnt" in arguments else None
        seed = int(arguments.get("seed", 0))
        source = ModelSource(whole_catalogue(), spec, spec.book(), learnt, seed)
        (model,) = served_models([self.model_name], source).models
        return SystemInPlay(model.system, model.card.acts, model.spec)
