"""Replaces credentials in logs, plans, REST answers and exceptions by `***`."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["MASK", "looks_secret", "mask_uri"]

MASK: Final = "***"

#: Those that Flink takes for sensitive, and a few more.
_SECRET_KEY: Final = re.compile(
    r"secret|password|passwd|token|access.?key|credential"
    r"|api-?key|service-key|account\.key|auth-params|basic-auth|jaas\.config|http-headers",
    re.IGNORECASE,
)
#: Keys of object stores may have slashes, so all up to the last @ of a word is the user's.
_USER_INFO: Final = re.compile(r"(?<=://)\S*@")
_QUERY_VALUE: Final = re.compile(r"([?&;])([^=&;\s]+)=([^&;\s]*)")


def looks_secret(key: str) -> bool:
    """Whether the name of a setting says that its value should not be seen.

    Example:
        >>> looks_secret("fs.s3a.secret.key"), looks_secret("rest.port")
        (True, False)
    """
    return _SECRET_KEY.search(key) is not None


def mask_uri(text: str) -> str:
    """Return a URI, or a text that has some, without users' keys and passwords.

    Example:
        >>> mask_uri("s3://AKIA12:abc+/=@bucket/logs?region=eu&secret_key=abc")
        's3://***@bucket/logs?region=eu&secret_key=***'
        >>> mask_uri("hdfs://host:8020/logs and /local/logs")
        'hdfs://host:8020/logs and /local/logs'
    """
    return _QUERY_VALUE.sub(_hide_value, _USER_INFO.sub(f"{MASK}@", text))


def _hide_value(match: re.Match[str]) -> str:
    mark, key, value = match.groups()
    return f"{mark}{key}={MASK if looks_secret(key) else value}"
