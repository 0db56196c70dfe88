"""Templates to pages: Jinja with autoescape, and one policy of what a page may load and run."""

import base64
import gzip
import json
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

CSP = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self' file:",
        "style-src 'self' file:",
        "img-src 'self' file: data:",
        "connect-src 'none'",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
"""No page asks anything of a network, and no text of a model can run: scripts are files of ours."""
ASSETS = files("reports.site") / "assets"
VENDOR = files("reports.site") / "vendor"

_ENVIRONMENT = Environment(
    loader=PackageLoader("reports.site"),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)


def render_page(template: str, **context: Any) -> str:
    """Return a page of HTML; every text in `context` is escaped."""
    return _ENVIRONMENT.get_template(template).render(csp=CSP, page=template, **context)


def data_script(name: str, data: bytes) -> str:
    """Return a data file: a script, since a page from a disk may fetch nothing else."""
    packed = base64.b64encode(gzip.compress(data, mtime=0)).decode()
    return f'podium.put({json.dumps(name)}, "{packed}");\n'
