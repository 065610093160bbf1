"""Signals that a shell ignores for its jobs in the background, and `nohup`, must not be ignored by what tests start."""

from __future__ import annotations

import signal

#: What tests send, and what a parent may have set to be ignored.
_SENT = (signal.SIGINT, signal.SIGHUP, signal.SIGTERM)


def start_processes_with_default_signals() -> None:
    """Take from this process that it ignores signals, because its children would too; they still do nothing here.

    A handler is not handed on to a new program, as an ignored signal is: there, the signal has its default effect.
    """
    for number in _SENT:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)
