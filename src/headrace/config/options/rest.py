"""REST and history: the server that shows and steers jobs, and what is remembered of jobs that have ended."""

from __future__ import annotations

import re
from datetime import timedelta

from headrace.config.memory_size import MemorySize
from headrace.config.option import option


def _check_ports(value: str) -> str | None:
    """Say what was expected if a text is not a list of ports."""
    for part in value.split(","):
        bounds = re.fullmatch(r"\s*([0-9]{1,5})(?:-([0-9]{1,5}))?\s*", part)
        if bounds is None:
            return "ports such as '8081', '8081-8181' or '8081,9000-9010'"
        first, last = int(bounds[1]), int(bounds[2] or bounds[1])
        if not first <= last <= 65_535:
            return "ports from 0 to 65535, the lower one first"
    return None


ENABLED = (
    option("headrace.rest.enabled", bool)
    .default(True)
    .describe("Whether `headrace run` serves REST while its jobs run.")
)
ADDRESS = (
    option("rest.address", str)
    .default("localhost")
    .describe("The host that clients, such as `headrace list`, connect to.")
    .deprecates("jobmanager.rpc.address")
)
PORT = (
    option("rest.port", int)
    .default(8081)
    .describe(
        "The port that clients connect to, and that the server listens on if `rest.bind-port` is not set."
    )
    .at_least(0)
    .at_most(65_535)
)
BIND_ADDRESS = (
    option("rest.bind-address", str)
    .default("127.0.0.1")
    .describe(
        "The address the server listens on. Any address that other machines can reach needs a token; set "
        "`headrace.rest.tls.certificate` as well, or the token is sent unencrypted."
    )
)
BIND_PORT = (
    option("rest.bind-port", str)
    .no_default("`rest.port`, or one of the next hundred")
    .describe("Ports to try, in order: `8081-8181` or `8081,9000`; 0 is any free one.")
    .checked_by(_check_ports)
)
TOKEN = (
    option("headrace.rest.token", str)
    .no_default()
    .describe("The token that clients must send as `Authorization: Bearer <token>`. At least 16 characters.")
    .as_secret()
    .checked_by(lambda value: None if len(value) >= 16 else "at least 16 characters")
)
TOKEN_FILE = (
    option("headrace.rest.token-file", str)
    .no_default()
    .describe("A file with the token, instead of the token itself.")
)
TLS_CERTIFICATE = (
    option("headrace.rest.tls.certificate", str)
    .no_default()
    .describe("A PEM file with the server's certificate chain. If set, the server uses TLS.")
)
TLS_KEY = (
    option("headrace.rest.tls.key", str)
    .no_default("in the file of the certificate")
    .describe("A PEM file with the private key of the certificate.")
)
TLS_AUTHORITIES = (
    option("headrace.rest.tls.authorities", str)
    .no_default("those of the system")
    .describe("A PEM file with the certificates that clients trust. If set, clients use TLS.")
)
MAX_CONTENT_LENGTH = (
    option("rest.server.max-content-length", MemorySize)
    .default(MemorySize.parse("100 mb"))
    .describe("The maximum size of a submitted job. The bodies of other requests are limited to 1 MB.")
)
REQUESTS_PER_SECOND = (
    option("headrace.rest.requests-per-second", int)
    .default(5000)
    .describe("How many requests per second a client may send; further ones are answered with status 429.")
    .at_least(1)
)
ASYNC_STORE_DURATION = (
    option("rest.async.store-duration", timedelta)
    .default(timedelta(minutes=5))
    .describe("How long the result of a savepoint or another long operation is kept.")
)
CLIENT_TIMEOUT = (
    option("client.timeout", timedelta)
    .default(timedelta(seconds=60))
    .describe("How long a client waits for an answer.")
)
SUBMIT_ENABLED = (
    option("web.submit.enable", bool)
    .default(False)
    .describe(
        "Whether jobs may be submitted through REST. A job is code: whoever may submit one runs it as the user of "
        "the cluster. Flink's default is true."
    )
)
CANCEL_ENABLED = (
    option("web.cancel.enable", bool).default(True).describe("Whether the web page offers to cancel jobs.")
)
RESCALE_ENABLED = (
    option("web.rescale.enable", bool)
    .default(True)
    .describe("Whether the web page offers to change the parallelism of jobs.")
)
REFRESH_INTERVAL = (
    option("web.refresh-interval", timedelta)
    .default(timedelta(seconds=3))
    .describe("How often the web page refreshes.")
)
EXCEPTION_HISTORY_SIZE = (
    option("web.exception-history-size", int)
    .default(16)
    .describe("How many failures of a job are kept.")
    .at_least(1)
)
ARCHIVE_DIRECTORY = (
    option("jobmanager.archive.fs.dir", str)
    .no_default("a session: `~/.local/state/headrace/archive`; else in memory")
    .describe("Where jobs that have ended are kept, one file each, in the format of Flink's history server.")
)
HISTORY_CAPACITY = (
    option("jobstore.max-capacity", int)
    .default(100)
    .describe("How many ended jobs are kept; older ones are deleted, on disk as well.")
    .at_least(1)
)
HISTORY_EXPIRATION = (
    option("jobstore.expiration-time", timedelta)
    .default(timedelta(days=7))
    .describe("How long an ended job is kept. Flink's default is an hour.")
)
