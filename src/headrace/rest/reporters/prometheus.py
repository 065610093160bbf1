"""Reporters for Prometheus: a page on a port of its own, and pushes to a PushGateway.

REST has the same page under `/metrics`; these are for scrapers and gateways that are set up for Flink.
"""

from __future__ import annotations

import base64
import re
import secrets
from collections.abc import Callable, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import quote
from urllib.request import Request, urlopen

from headrace.config.configuration import Configuration
from headrace.config.options import rest
from headrace.errors import ConfigurationError
from headrace.rest.reporters.samples import Sampler
from headrace.rest.reporters.settings import ReporterSettings
from headrace.rest.resources.metric_sets import MetricSet
from headrace.rest.resources.prometheus import expose

__all__ = ["PrometheusPage", "PushGatewayReporter"]

_TIMEOUT_S = 10
#: What Flink replaces in values of labels.
_UNUSUAL = re.compile(r"[^a-zA-Z0-9:_]")
_TEXT = "text/plain; version=0.0.4; charset=utf-8"


class PushGatewayReporter:
    """Pushes metrics to a PushGateway.

    Args:
        settings: The options `PUSH_OPTIONS`.
        configuration: Of the process.
    """

    def __init__(self, settings: ReporterSettings, configuration: Configuration) -> None:
        self._page = _Page(configuration, settings)
        base = settings.text("hostUrl").rstrip("/")
        if not base.startswith(("http://", "https://")):
            raise ConfigurationError(f"{settings.prefix}.hostUrl: expected http://host:port; got {base!r}")
        job = settings.text("jobName", "headrace")
        if settings.truth("randomJobNameSuffix", default=True):
            job += secrets.token_hex(8)
        labels = _grouping(settings)
        path = "".join(f"/{quote(key, '')}/{quote(value, '')}" for key, value in labels.items())
        self._url = f"{base}/metrics/job/{quote(job, '')}{path}"
        self._deletes = settings.truth("deleteOnShutdown", default=True)
        self._headers = {"Content-Type": _TEXT}
        user = settings.options.get("username")
        if user is not None:
            login = f"{user}:{settings.text('password')}".encode()
            self._headers["Authorization"] = f"Basic {base64.b64encode(login).decode()}"

    def report(self, metrics: Sequence[MetricSet]) -> None:
        """Replace what the gateway has of this process."""
        self._request("PUT", self._page.text(metrics))

    def close(self) -> None:
        if self._deletes:
            self._request("DELETE", None)

    def _request(self, method: str, text: str | None) -> None:
        body = None if text is None else text.encode()
        request = Request(self._url, body, self._headers, method=method)  # noqa: S310  # checked above
        with urlopen(request, timeout=_TIMEOUT_S):  # noqa: S310
            pass


def _grouping(settings: ReporterSettings) -> dict[str, str]:
    labels = {}
    for each in settings.text("groupingKey", "").split(";"):
        key, equals, value = each.partition("=")
        if each and not (equals and key and value):
            raise ConfigurationError(f"{settings.prefix}.groupingKey: expected k1=v1;k2=v2; got {each!r}")
        if each:
            labels[key] = value
    return labels


class PrometheusPage:
    """Serves metrics on a port of its own, under any path, as Flink's reporter does.

    Args:
        settings: `port`, a number or a range; the first free one counts.
        configuration: Of the process.
        ask: Returns all metrics.
    """

    def __init__(
        self,
        settings: ReporterSettings,
        configuration: Configuration,
        ask: Callable[[], Sequence[MetricSet]],
    ) -> None:
        page = _Page(configuration, settings)

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                body = page.text(ask()).encode()
                self.send_response(200)
                self.send_header("Content-Type", _TEXT)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                pass  # a scrape every few seconds is no news

        self._server = _bind(configuration.get(rest.BIND_ADDRESS), settings, Handler)
        self._thread = Thread(target=self._server.serve_forever, name="prometheus page", daemon=True)
        self._thread.start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    def report(self, metrics: Sequence[MetricSet]) -> None:
        """Do nothing: Prometheus asks."""

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


def _bind(
    address: str, settings: ReporterSettings, handler: type[BaseHTTPRequestHandler]
) -> ThreadingHTTPServer:
    text = settings.text("port", "9249")
    first, _, last = text.partition("-")
    if not first.isdigit() or (last and not last.isdigit()):
        raise ConfigurationError(f"{settings.prefix}.port: expected a port or a range of ports; got {text!r}")
    for port in range(int(first), int(last or first) + 1):
        try:
            return ThreadingHTTPServer((address, port), handler)
        except OSError as error:
            reason = error
    raise ConfigurationError(
        f"{settings.prefix}.port: cannot listen on {address}, port {text}: {reason.strerror}",
        hint="choose a free port, or a range such as 9250-9260",
    )


class _Page:
    """The page of one reporter: its filters, its labels."""

    def __init__(self, configuration: Configuration, settings: ReporterSettings) -> None:
        self._sampler = Sampler(configuration, settings)
        self._filters_labels = settings.truth("filterLabelValueCharacters", default=True)

    def text(self, metrics: Sequence[MetricSet]) -> str:
        wanted = map(self._sampler.wants, metrics)
        return expose((each, self._labels(each)) for each in wanted)

    def _labels(self, metrics: MetricSet) -> dict[str, str]:
        labels = self._sampler.labels(metrics)
        if not self._filters_labels:
            return labels
        return {key: _UNUSUAL.sub("_", value) for key, value in labels.items()}
