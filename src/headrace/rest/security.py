"""Which requests are allowed: token, origin, host, rate. All of it is decided before a request is routed."""

from __future__ import annotations

import hmac
import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from urllib.parse import urlsplit

from headrace.config.options.rest import TOKEN_FILE
from headrace.rest.errors import RestError
from headrace.rest.http import Request
from headrace.rest.settings import RestSettings

#: Clients whose rate is remembered; the one not heard of for longest is forgotten first.
_CLIENTS = 1_000


class RateLimit:
    """A bucket of tokens per client: it holds those of one second.

    Args:
        per_second: How many requests a client has.
        clock: Seconds that only go forward.
    """

    def __init__(self, per_second: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._per_second = per_second
        self._clock = clock
        #: Client -> (tokens left, when that was).
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def take(self, client: str) -> bool:
        """Take a token; return whether there was one."""
        now = self._clock()
        left, then = self._buckets.pop(client, (float(self._per_second), now))
        left = min(float(self._per_second), left + (now - then) * self._per_second)
        is_allowed = left >= 1.0
        self._buckets[client] = (left - 1.0 if is_allowed else left, now)
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        return is_allowed


class Guard:
    """Admits requests, or raises the error that refuses them.

    Args:
        settings: The options.
        clock: Seconds that only go forward.
    """

    def __init__(self, settings: RestSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._settings = settings
        self._rate = RateLimit(settings.requests_per_second, clock)
        self._expected = None if settings.token is None else f"Bearer {settings.token}".encode()

    def check(self, request: Request) -> None:
        """Make sure that a request may be answered.

        Raises:
            RestError: If it may not; it does not say more than it must.
        """
        self.check_place(request)
        self._check_token(request)

    def check_place(self, request: Request) -> None:
        """Check the rate, the host name and the origin of a request before anything else.

        Raises:
            RestError: If one of them is not allowed.
        """
        if not self._rate.take(request.client):
            raise RestError(429, "Too many requests.", {"Retry-After": "1"})
        self._check_host(request)
        self._check_origin(request)

    def _check_host(self, request: Request) -> None:
        """Reject host names that another site has made resolve to this machine (DNS rebinding)."""
        host = _host_name(request.headers.get("host", ""))
        if self._settings.is_loopback and host is not None and not _is_loopback(host):
            raise RestError(403, "Forbidden: this server answers requests from its own machine only.")

    def check_changing_get(self, request: Request) -> None:
        """Make sure that a GET which changes something was meant to: any page can have a browser send a GET.

        A token settles it, since other pages cannot make the browser show it. Without one, the browser itself must say
        that the request comes from our own page.

        Raises:
            RestError: If it may come from elsewhere.
        """
        if self._expected is None and request.headers.get("sec-fetch-site") != "same-origin":
            raise RestError(
                403,
                f"Forbidden: {request.method} {request.path} needs a token ({TOKEN_FILE.key}), because any web page "
                "can send it. To cancel a job, use PATCH /jobs/:jobid.",
            )

    def _check_origin(self, request: Request) -> None:
        """Reject requests that a browser sends on behalf of another site."""
        host = request.headers.get("host", "").lower()
        origin = request.headers.get("origin")
        if origin is not None:
            is_foreign = urlsplit(origin).netloc.lower() != host
        elif request.method in {"GET", "HEAD"}:
            is_foreign = False
        else:
            # Browsers send the origin with what changes something; older ones may send these only.
            referrer = request.headers.get("referer")
            is_foreign = request.headers.get("sec-fetch-site") in {"cross-site", "same-site"} or (
                referrer is not None and urlsplit(referrer).netloc.lower() != host
            )
        if is_foreign:
            raise RestError(403, "Forbidden: the request comes from another site.")

    def _check_token(self, request: Request) -> None:
        if self._expected is None:
            return
        shown = request.headers.get("authorization", "").encode("utf-8", "surrogateescape")
        if not hmac.compare_digest(shown, self._expected):
            raise RestError(
                401,
                "Unauthorized: send the token in the header Authorization: Bearer <token>.",
                {"WWW-Authenticate": "Bearer"},
            )


def _host_name(header: str) -> str | None:
    """Return the name in a Host header; None without one."""
    try:
        return urlsplit(f"//{header}").hostname
    except ValueError:
        return "?"


@lru_cache(maxsize=64)
def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
