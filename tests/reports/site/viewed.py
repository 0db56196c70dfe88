"""A real view on a free port of this machine, plain HTTP to it, and what a file of texts says."""

import base64
import gzip
import http.client
import json
import re
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from podium.harness.listener import bound_socket, listen
from podium.reports.site.view import ADDRESS, ServedRuns, ViewOptions, view_app
from tests.harness.in_thread import served


@contextmanager
def viewed(*dirs: Path) -> Generator[str]:
    """Yield the address of a view that runs until the block ends, as `podium view` does."""
    with TemporaryDirectory() as folder, bound_socket(ADDRESS, 0) as taken:
        runs = ServedRuns(dirs, Path(folder), ViewOptions())
        runs.fresh()
        url = listen(taken)
        with served(view_app(runs, taken.getsockname()[1]), taken):
            yield url


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request came to."""

    status: int
    headers: dict[str, str]
    """By name in lower case."""
    body: bytes

    @property
    def text(self) -> str:
        """The body as a person reads it."""
        return self.body.decode()


def ask(url: str, path: str = "/", method: str = "GET", **headers: str) -> Answer:
    """Return what a request comes to; the path goes as it is, `Host` too where it is given."""
    there = http.client.HTTPConnection(urlsplit(url).netloc, timeout=60)
    try:
        there.putrequest(method, path, skip_host="Host" in headers)
        for name, value in headers.items():
            there.putheader(name, value)
        there.endheaders()
        reply = there.getresponse()
        found = {name.lower(): value for name, value in reply.getheaders()}
        return Answer(reply.status, found, reply.read())
    finally:
        there.close()


def queries(script: str) -> list[dict[str, Any] | None]:
    """Return what a file of texts holds."""
    return packed(script)["queries"]


def packed(script: str) -> Any:
    """Return what a data file holds, as a page unpacks it."""
    found = re.search(r'"([A-Za-z0-9+/=]*)"\);\s*$', script)
    assert found, script[:100]
    return json.loads(gzip.decompress(base64.b64decode(found.group(1))))
