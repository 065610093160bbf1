"""The options of the server, as one small object."""

from __future__ import annotations

import ipaddress
import secrets
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Self

from headrace.config.configuration import Configuration
from headrace.config.options import rest as options
from headrace.errors import ConfigurationError

#: Without `rest.bind-port`, so many ports behind `rest.port` are tried.
_MORE_PORTS = 100
_LEAST_TOKEN = 16


@dataclass(frozen=True)
class RestSettings:
    """Where the server listens, and whom it answers."""

    bind_address: str = "127.0.0.1"
    #: Tried in order; 0 is any free one.
    ports: tuple[int, ...] = (0,)
    #: What clients must show; None: nothing.
    token: str | None = field(default=None, repr=False)
    certificate: str | None = None
    key: str | None = None
    max_content_length: int = 100 * 1024 * 1024
    requests_per_second: int = 5000
    keep_results_s: float = 300.0

    @classmethod
    def from_configuration(cls, configuration: Configuration) -> Self:
        """Read the options.

        Raises:
            ConfigurationError: If the server would listen to the network and answer everybody.
        """
        get = configuration.get
        settings = cls(
            bind_address=get(options.BIND_ADDRESS),
            ports=_ports(configuration),
            token=read_token(configuration),
            certificate=get(options.TLS_CERTIFICATE),
            key=get(options.TLS_KEY),
            max_content_length=get(options.MAX_CONTENT_LENGTH).get_bytes(),
            requests_per_second=get(options.REQUESTS_PER_SECOND),
            keep_results_s=get(options.ASYNC_STORE_DURATION) / timedelta(seconds=1),
        )
        settings._check()
        return settings

    @property
    def is_loopback(self) -> bool:
        """Whether only this machine can reach the server."""
        if self.bind_address == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.bind_address).is_loopback
        except ValueError:
            return False

    @property
    def scheme(self) -> str:
        return "http" if self.certificate is None else "https"

    def _check(self) -> None:
        if not self.is_loopback and self.token is None:
            raise ConfigurationError(
                f"{options.BIND_ADDRESS.key} is {self.bind_address}: anyone who can reach it could control jobs",
                hint=f"set {options.TOKEN_FILE.key} or {options.TOKEN.key}, such as {secrets.token_urlsafe(24)}, and "
                f"{options.TLS_CERTIFICATE.key} so that it is not sent unencrypted",
            )
        for option, path in (
            (options.TLS_CERTIFICATE, self.certificate),
            (options.TLS_KEY, self.key),
        ):
            if path is not None and not Path(path).is_file():
                raise ConfigurationError(f"{option.key}: file {path} does not exist")
        if self.key is not None and self.certificate is None:
            raise ConfigurationError(f"{options.TLS_KEY.key} needs {options.TLS_CERTIFICATE.key}")


def read_token(configuration: Configuration) -> str | None:
    """Return what clients show; None if nothing.

    Raises:
        ConfigurationError: If the file cannot be read, or has no proper token.
    """
    path = configuration.get(options.TOKEN_FILE)
    if path is None:
        return configuration.get(options.TOKEN)
    try:
        token = Path(path).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{options.TOKEN_FILE.key}: {path} cannot be read: {error}") from error
    if len(token) < _LEAST_TOKEN:
        raise ConfigurationError(
            f"{options.TOKEN_FILE.key}: the token in {path} must have at least {_LEAST_TOKEN} characters"
        )
    return token


def _ports(configuration: Configuration) -> tuple[int, ...]:
    text = configuration.get(options.BIND_PORT)
    if text is None:
        first = configuration.get(options.PORT)
        return (0,) if first == 0 else tuple(range(first, min(first + _MORE_PORTS, 65_535) + 1))
    ports: list[int] = []
    for part in text.split(","):
        low, _, high = part.strip().partition("-")
        ports += range(int(low), int(high or low) + 1)
    return tuple(ports)
