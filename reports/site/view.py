"""Serve the site to this machine: pages with full texts, rendered on request, and Inspect View.

Every local process that can open a connection can read the site. Other web pages cannot:
`podium.harness.listener` checks the Host header of a request, and `HEADERS` forbid other pages to
embed a response. No file is served by its path: a request names a known page, row or log, or is
refused.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from importlib.metadata import version
from importlib.resources import files
from itertools import chain
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from threading import Lock

from starlette.applications import Starlette
from starlette.datastructures import MutableHeaders
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, PlainTextResponse, Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from podium.harness.errors import UserError
from podium.harness.ledger.log_files import EVAL, logs_below
from podium.harness.ledger.logs import NOTHING, Json, open_log
from podium.harness.ledger.runs import JOURNALS
from podium.harness.ledger.served import served_below
from podium.harness.listener import Access, bound_socket, listen, serve, with_access
from podium.reports.audit import beside_a_report
from podium.reports.blocks import DEFAULTS, ReportOptions
from podium.reports.render import Content, write_files
from podium.reports.report import report_of
from podium.reports.site.build import SiteOptions, write_served_site, write_site
from podium.reports.site.index import Index, site_blocks
from podium.reports.site.pages import CSP
from podium.reports.site.texts import RowTexts, text_shard

ADDRESS = "127.0.0.1"
INSPECT = "inspect/"
HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    # Data files are scripts: without this any page in the reader's browser could run one and read
    # its data.
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
NO_FRAME = "; frame-ancestors 'none'"
OWN_POLICY = CSP.replace(" file:", "") + NO_FRAME
SCRIPT = "text/javascript"
NO_PAGE = "There is no page {!r:.80} here. Open / for the first page."


@dataclass(frozen=True, slots=True)
class ViewOptions:
    """The options of `podium view`."""

    port: int = 0
    """The port to listen on; 0: any free port."""
    report: ReportOptions = DEFAULTS
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    """Suite name -> current version; a page warns about runs with another version."""


@dataclass(slots=True)
class _Made:
    """A site, built from one state of the runs' files (paths, sizes, modification times)."""

    state: frozenset[tuple[str, int, int]]
    pages: Mapping[str, Path]
    first: str
    """The file name of the page at `/`."""
    index: Index
    texts: Mapping[int, RowTexts]
    logs: Mapping[str, Path]
    later: Mapping[str, Callable[[], Content]]
    """Name -> function that renders a file on request: downloads, blocks with another reference."""


@dataclass
class ServedRuns:
    """The pages of some runs, rebuilt when a page is requested after their files changed."""

    dirs: tuple[Path, ...]
    folder: Path
    """The folder of the pages; it contains no text of a query."""
    wanted: ViewOptions
    _lock: Lock = field(default_factory=Lock)
    _made: _Made | None = None

    def fresh(self) -> _Made:
        """Return the site, rebuilt if the runs' files changed; UserError if they cannot be read."""
        with self._lock:
            state = frozenset(_state(self.dirs))
            if self._made is None or self._made.state != state:
                self._made = self._make(state)
            return self._made

    def made(self) -> _Made:
        """Return the site as last built, so that a page gets data of its own build."""
        return self._made or self.fresh()

    def file(self, site: _Made, name: str) -> Path | None:
        """Return a file of the site, rendering it if it is in `later`; None for an unknown name."""
        if name not in site.later:
            return site.pages.get(name)
        with self._lock:
            path = self.folder / name
            if not path.is_file():
                write_files(self.folder, {name: site.later[name]()})
        return path

    def log(self, name: str) -> Path | None:
        """Return the path of a log; None for an unknown name or a symlink out of `dirs`."""
        path = self.made().logs.get(name)
        places = [folder.resolve() for folder in self.dirs]
        if path is None or not any(path.resolve().is_relative_to(folder) for folder in places):
            return None
        return path

    def _make(self, state: frozenset[tuple[str, int, int]]) -> _Made:
        for name in ("downloads", "data/against"):  # rendered from earlier states of the logs
            rmtree(self.folder / name, ignore_errors=True)
        served = _are_served(self.dirs)
        beside = None if served else beside_a_report(self.dirs)
        report = None if served else report_of(self.dirs, self.wanted.report, beside)
        options = SiteOptions(texts=False, versions=self.wanted.versions, served=True)
        if report:
            site = write_site(self.dirs, report, self.folder, options, beside)
        else:
            site = write_served_site(self.dirs, self.folder)
        return _Made(
            state=state,
            pages={path.relative_to(site.folder).as_posix(): path for path in site.files},
            first=site.first,
            index=Index(tuple(site_blocks(report.shown)) if report else (), served=True),
            texts={texts.row: texts for texts in site.texts},
            later=site.later,
            logs={path.name: path for system_run in report.system_runs for path in system_run.paths}
            if report
            else {},
        )


def _are_served(dirs: Sequence[Path]) -> bool:
    """Return whether directories contain requests to `podium serve` and no run's logs."""
    return not any(any(logs_below(folder)) for folder in dirs) and any(map(served_below, dirs))


def _state(dirs: Sequence[Path]) -> Iterator[tuple[str, int, int]]:
    """Yield path, size and modification time of each file that a run or a later command changes."""
    for folder in dirs:
        for path in chain(
            [folder], *(folder.glob(kind) for kind in (f"**/*{EVAL}", JOURNALS, "**/*.json"))
        ):
            with suppress(OSError):  # a temporary file may have been deleted since
                about = path.stat()
                yield str(path), about.st_size, about.st_mtime_ns


def serve_view(
    dirs: Sequence[Path], say: Callable[[str], None], options: ViewOptions = ViewOptions()
) -> None:
    """Serve the pages of runs on loopback until a signal; UserError if the runs cannot be read."""
    with (
        bound_socket(ADDRESS, options.port) as listener,
        TemporaryDirectory(prefix="podium-view-") as folder,
    ):
        runs = ServedRuns(tuple(dirs), Path(folder), options)
        runs.fresh()
        url = listen(listener)
        application = view_app(runs, listener.getsockname()[1])
        serve(application, listener, ready=lambda: say(f"Look at {url}/ (Ctrl-C ends it)."))
        say("Stopped.")


def view_app(runs: ServedRuns, port: int) -> ASGIApp:
    """Return the ASGI application of `podium view`, which listens on a port of this machine."""

    def page(request: Request) -> Response:
        name = request.path_params.get("name") or ""
        # A page is built from the current logs; its data files are of the same build as the page.
        site = runs.fresh() if not name or name.endswith(".html") else runs.made()
        path = runs.file(site, name or site.first)
        return FileResponse(path) if path else _missing(NO_PAGE.format(name))

    def texts(request: Request) -> Response:
        row, number = request.path_params["row"], request.path_params["number"]
        row_texts = runs.made().texts.get(row)
        if row_texts is None or number not in row_texts.numbers:
            return _missing(f"Row {row} of these pages has no text file {number}. Reload them.")
        return Response(text_shard(row_texts, number), media_type=SCRIPT)

    def cells(request: Request) -> Response:
        name, site = request.path_params["name"], runs.made()
        if script := site.index.text(name):
            return Response(script, media_type=SCRIPT)
        path = runs.file(site, f"data/{name}.js")
        return FileResponse(path, media_type=SCRIPT) if path else _missing(NO_PAGE.format(name))

    viewer = InspectViewer.installed(runs)
    served = json.dumps({"inspect": INSPECT if viewer else None})
    page_routes = [
        Route("/data/text/{row:int}/{number:int}.js", texts),
        Route("/data/{name:path}.js", cells),
        Route("/assets/served.js", _script(f"podium.served = {served};")),
        Route("/favicon.ico", _nothing),
        Route("/", page),
        Route("/{name:path}", page),
    ]
    routes = [*(viewer.routes if viewer else ()), *page_routes]
    application = Starlette(routes=routes, exception_handlers={UserError: _unreadable})
    guarded = _guarded(application, viewer.policy if viewer else OWN_POLICY)
    return with_access(guarded, Access(ADDRESS, port, remedy=""))


@dataclass
class InspectViewer:
    """Inspect's log viewer, as installed, for the logs of the runs."""

    runs: ServedRuns
    folder: Path

    @classmethod
    def installed(cls, runs: ServedRuns) -> "InspectViewer | None":
        """Return Inspect's viewer; None if this version of Inspect has it in another folder."""
        folder = Path(str(files("inspect_ai"))) / "_view" / "dist"
        here = all((folder / name).is_file() for name in ("index.html", POLICY))
        return cls(runs, folder) if here else None

    @cached_property
    def policy(self) -> str:
        """The viewer's own content security policy."""
        stated: Json = json.loads((self.folder / POLICY).read_text(encoding="utf-8"))
        rules = (f"{name} {' '.join(sources)}" for name, sources in stated["directives"].items())
        return "; ".join(rules) + NO_FRAME

    @property
    def routes(self) -> list[Route | Mount]:
        """The viewer's routes: its page, scripts, the list of logs, and parts of logs."""
        # A package's files may be links into an installer's cache.
        assets = StaticFiles(directory=self.folder / "assets", follow_symlink=True)
        return [
            Route(f"/{INSPECT}", self._page),
            Route(f"/{INSPECT}logs/listing.json", self._listing),
            Route(f"/{INSPECT}logs/{{name}}", self._log),
            Mount(f"/{INSPECT}assets", assets),
        ]

    def _page(self, _: Request) -> Response:
        page = (self.folder / "index.html").read_text(encoding="utf-8")
        # Texts of models are shown as text, not as Markdown.
        settings = {"inspect_version": version("inspect-ai"), "trust_content": False}
        about = {"log_dir": "logs", **settings}
        tag = f'<script id="log_dir_context" type="application/json">{json.dumps(about)}</script>'
        return HTMLResponse(page.replace("</head>", f"{tag}</head>", 1))

    def _listing(self, _: Request) -> Response:
        listed = {name: _overview(path) for name, path in self.runs.made().logs.items()}
        return Response(json.dumps(listed), media_type="application/json")

    def _log(self, request: Request) -> Response:
        name = request.path_params["name"]
        path = self.runs.log(name)
        if path is None:
            return _missing(f"There is no log {name!r:.80} here. Open /{INSPECT} for the list.")
        return FileResponse(path, media_type="application/octet-stream")


POLICY = "content-security-policy.json"
NAMED = ("eval_id", "run_id", "task", "task_id", "task_version", "model")


def _overview(path: Path) -> Json:
    """Return a log's entry for Inspect's viewer, with the required fields of its `LogOverview`."""
    with open_log(path) as log:
        header = log.header
        about, stats = header["eval"], header.get("stats") or NOTHING
        times = {name: stats.get(name) or "" for name in ("started_at", "completed_at")}
        progress = {"version": header.get("version", 2), "status": header.get("status", "started")}
        return {**{name: about.get(name) for name in NAMED}, **progress, **times}


def _nothing(_: Request) -> Response:
    return Response(status_code=204)


def _script(script: str) -> Callable[[Request], Response]:
    """Return an endpoint that answers with a script."""
    return lambda _: Response(f'"use strict";\n{script}\n', media_type=SCRIPT)


def _missing(sentence: str) -> Response:
    return PlainTextResponse(f"{sentence}\n", 404)


def _unreadable(_: Request, error: Exception) -> Response:
    """Return a response with status 503 and the reason why runs cannot be read at the moment."""
    return PlainTextResponse(f"{error} Reload this page after fixing that.\n", 503)


def _guarded(application: ASGIApp, inspects: str) -> ASGIApp:
    """Restrict an application to GET and HEAD; add `HEADERS` and a security policy to responses."""
    message = "These pages can only be read. Use GET or HEAD.\n"
    refusal = PlainTextResponse(message, 405, {"Allow": "GET, HEAD"})

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        policy = inspects if scope["path"].startswith(f"/{INSPECT}") else OWN_POLICY

        async def sent(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = {**HEADERS, "Content-Security-Policy": policy}
                MutableHeaders(scope=message).update(headers)
            await send(message)

        reads = scope["method"] in ("GET", "HEAD")
        await (application if reads else refusal)(scope, receive, sent)

    return answer
