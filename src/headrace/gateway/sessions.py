"""The sessions of a gateway: how many there may be, and when unused ones are closed."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from uuid import uuid4

from headrace.config.configuration import Configuration
from headrace.config.options import gateway as options
from headrace.datastream.execution_context import ExecutionContext
from headrace.errors import GatewayError
from headrace.gateway.session import GatewaySession
from headrace.planner import parse_statements
from headrace.table import EnvironmentSettings, TableEnvironment

__all__ = ["Sessions"]

_log = logging.getLogger(__name__)


class Sessions:
    """Opens, finds and closes sessions.

    Args:
        context: Configuration and executor of their environments.
        clock: Seconds that only go forward.
    """

    def __init__(self, context: ExecutionContext, clock: Callable[[], float] = time.monotonic) -> None:
        self._context = context
        self._clock = clock
        get = context.configuration.get
        self._idle_s = get(options.IDLE_TIMEOUT) / timedelta(seconds=1)
        self._check_s = get(options.CHECK_INTERVAL) / timedelta(seconds=1)
        self._most = get(options.MAX_SESSIONS)
        self._most_threads = get(options.MAX_THREADS)
        self._lock = threading.Lock()
        self._sessions: dict[str, tuple[GatewaySession, float]] = {}
        self._is_over = threading.Event()

    @property
    def configuration(self) -> Configuration:
        """The options that sessions begin with."""
        return self._context.configuration

    def start(self) -> None:
        """Look for idle sessions from now on."""
        if self._idle_s > 0 and self._check_s > 0:
            threading.Thread(target=self._watch, name="headrace-gateway-sessions", daemon=True).start()

    def close(self) -> None:
        """Close all sessions and cancel their statements."""
        self._is_over.set()
        with self._lock:
            sessions, self._sessions = list(self._sessions.values()), {}
        for session, _ in sessions:
            session.close()

    def open(self, properties: Mapping[str, str]) -> GatewaySession:
        """Open a session.

        Raises:
            GatewayError: If there are too many.
            ConfigurationError: If an option has a value that it cannot have.
        """
        with self._lock:
            if len(self._sessions) >= self._most:
                raise GatewayError(
                    f"{len(self._sessions)} sessions are open, and no more are allowed",
                    hint=f"close some, or raise {options.MAX_SESSIONS.key}",
                )
        with self._context.entered():
            t_env = TableEnvironment.create(EnvironmentSettings.in_streaming_mode())
        session = GatewaySession(str(uuid4()), t_env, properties)
        with self._lock:
            self._sessions[session.handle] = session, self._clock()
        return session

    def get(self, handle: str) -> GatewaySession:
        """Find a session, which counts as used from now.

        Raises:
            GatewayError: If there is none of this name.
        """
        with self._lock:
            found = self._sessions.get(handle)
            if found is None:
                raise GatewayError(
                    f"session {handle} does not exist",
                    is_missing=True,
                    hint=f"it was closed, or had no request for {options.IDLE_TIMEOUT.key}; open a new one",
                )
            self._sessions[handle] = found[0], self._clock()
            return found[0]

    def check_room(self) -> None:
        """Make sure that another statement may run.

        Raises:
            GatewayError: If too many run.
        """
        with self._lock:
            sessions = [session for session, _ in self._sessions.values()]
        if sum(session.running() for session in sessions) >= self._most_threads:
            raise GatewayError(
                f"{self._most_threads} statements are running, and no more are allowed",
                hint=f"close operations that you no longer need, or raise {options.MAX_THREADS.key}",
            )

    def end(self, handle: str) -> None:
        """Close a session; raises as `get` does."""
        self.get(handle)
        with self._lock:
            found = self._sessions.pop(handle, None)
        if found is not None:
            found[0].close()

    def deploy(self, script: str, options: Mapping[str, str]) -> str:
        """Run a script in the background, in a session of its own that ends with it; returns the name of the run.

        The next statement begins when the one before it was executed: a query when all its rows have come. Rows are
        discarded. Jobs of INSERTs go on when the script has ended.

        Raises:
            SqlParseError: If the script has wrong syntax; nothing of it has run then.
            GatewayError: If there are too many sessions.
            ConfigurationError: If an option has a value that it cannot have.
        """
        statements = [each.sql for each in parse_statements(script)]
        session = self.open(options)
        name = f"script-{session.handle[:8]}"
        threading.Thread(
            target=self._run_script, args=(name, session, statements), name=f"headrace-{name}", daemon=True
        ).start()
        return name

    def _run_script(self, name: str, session: GatewaySession, statements: Sequence[str]) -> None:
        try:
            for number, statement in enumerate(statements, 1):
                operation = session.submit(statement)
                operation.drain(lambda: self.get(session.handle))
                if operation.error is not None:
                    _log.error("%s: statement %d failed: %s", name, number, operation.error)
                    return
            _log.info("%s: all %d statements were executed", name, len(statements))
        except GatewayError as error:  # somebody has closed the gateway
            _log.warning("%s ends early: %s", name, error)
        finally:
            with suppress(GatewayError):
                self.end(session.handle)

    def close_idle(self) -> int:
        """Close the sessions that were not used for too long; return how many."""
        if self._idle_s <= 0:
            return 0
        oldest = self._clock() - self._idle_s
        with self._lock:
            idle = [handle for handle, (_, used_s) in self._sessions.items() if used_s <= oldest]
            sessions = [self._sessions.pop(handle)[0] for handle in idle]
        for session in sessions:
            _log.info("session %s is closed: no request for %.0f s", session.handle, self._idle_s)
            session.close()
        return len(sessions)

    def _watch(self) -> None:
        while not self._is_over.wait(self._check_s):
            self.close_idle()
