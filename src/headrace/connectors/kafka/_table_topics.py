"""Which topics a table of Kafka is read from and written to: `topic`, a list, or `topic-pattern`."""

from __future__ import annotations

import re
from dataclasses import dataclass

from headrace.config.table_options import TableOptions
from headrace.connectors.kafka.source import KafkaSourceBuilder
from headrace.errors import ConnectorError, SqlValidationError

__all__ = ["TableTopics"]


@dataclass(frozen=True)
class TableTopics:
    """The topics of a table: names, or a pattern that the whole name matches."""

    names: tuple[str, ...] = ()
    pattern: str | None = None

    @classmethod
    def of(cls, options: TableOptions) -> TableTopics:
        """Read the options.

        Raises:
            SqlValidationError: Neither or both are set, no topic is named, or the pattern is not one.
        """
        listed, pattern = options.text("topic"), options.text("topic-pattern")
        if (listed is None) == (pattern is None):
            raise SqlValidationError(f"table {options.table!r}: give either 'topic' or 'topic-pattern'")
        if pattern is not None:
            try:
                re.compile(pattern)
            except re.error as error:
                raise options.wrong("topic-pattern", f"a regular expression ({error})") from None
            return cls(pattern=pattern)
        names = tuple(each.strip() for each in (listed or "").split(";") if each.strip())
        if not names:
            raise options.wrong("topic", "the name of a topic, or several separated by ';'")
        return cls(names)

    @property
    def single(self) -> str | None:
        """The topic, if the options name exactly one."""
        return self.names[0] if len(self.names) == 1 else None

    def subscribe(self, builder: KafkaSourceBuilder) -> None:
        """Have a source read these topics."""
        if self.pattern is None:
            builder.set_topics(*self.names)
        else:
            builder.set_topic_pattern(self.pattern)

    def checked(self, topic: str | None) -> str:
        """Return the topic that a row names.

        Raises:
            ConnectorError: It names none, or one that the table is not written to.
        """
        if topic is not None and (topic in self.names or self._matches(topic)):
            return topic
        expected = (
            f"matches {self.pattern!r}" if self.pattern is not None else f"is one of {', '.join(self.names)}"
        )
        found = "names none (its column of metadata 'topic' is NULL)" if topic is None else f"names {topic!r}"
        raise ConnectorError(f"a row must name a topic that {expected}; it {found}", retryable=False)

    def _matches(self, topic: str) -> bool:
        return self.pattern is not None and re.fullmatch(self.pattern, topic) is not None
