"""How large an epoch is: as large as keeps it near its target duration while there is a backlog.

Without a backlog an epoch takes what is there and is as short as that makes it. So this is also the flow control of a
job: whatever is slow in it, an operator, a sink or the publishing of its output, makes epochs longer, and the sources
read less in the next. The epoch under way when something becomes slow runs to its end.

A function of the user may take seconds for each record, so a job that calls one begins with a few records:

    records of a source subtask    10   320   5,120   80,000 ...     fast functions: as many as fit the target
                                   10    10       5        5 ...     0.2 s per record: an epoch takes a second
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from statistics import linear_regression

#: Bounds of one correction. Too small an epoch is made up for soon and costs little, too large a one takes long.
_MOST_GROWTH = 16.0
_MOST_SHRINKAGE = 1 / 256
#: The part of the target that is for work, however long the rest of an epoch takes.
_LEAST_WORK = 0.5
_SHORTEST_S = 1e-3
_REMEMBERED_EPOCHS = 1_000
#: Fewer records without a backlog do not say what a record costs.
_ENOUGH_TO_TELL = 50
#: Records that can be read at once where nothing is known of the speed, if no function of the user is called.
_FEW_RECORDS = 5_000
#: Records of a first epoch that calls functions of the user, and by how much the next may be larger.
_PROBE_RECORDS = 10
_PROBE_GROWTH = 32.0
_LEAST_GROWTH = 2.0
#: Functions that work longer than this on a few records are slow.
_SLOW_S = 1.0
#: The part of the target that functions take to be loaded; less does not say what a record costs.
_LOADING = 0.08
#: If fewer records than this fit into the target, an epoch takes a part of it: somebody may wait for each of them.
_FEW_THAT_FIT = 500
_SHORT_PART = 0.2
#: But it takes at least so many times what is spent around its records.
_LEAST_TO_FIXED = 10
#: So many epochs, if the largest is so many times the smallest, tell what does not depend on records. Epochs of like
#: size differ by chance.
_EPOCHS_TO_COMPARE = 8
_DIFFERENT_SIZES = 4


@dataclass(frozen=True)
class PacingSettings:
    """The options behind the pace."""

    target_duration: timedelta
    #: What one source subtask reads before any speed is known; None leaves it to the pacer.
    initial_records: int | None
    #: A fixed bound on what one source subtask reads per epoch; None leaves it to the pacer.
    max_records: int | None
    #: Bytes that one subtask may send or receive per epoch.
    max_bytes: int


class EpochPacer:
    """Decides how many records one source subtask reads in the next epoch.

    Args:
        settings: The options.
        expected_rate: About how many records a subtask does in a second; None if unknown.
        may_be_slow: Whether functions of the user are called, which may take any time.
    """

    def __init__(
        self, settings: PacingSettings, expected_rate: int | None = None, *, may_be_slow: bool = False
    ) -> None:
        self._settings = settings
        self._usual_records = float(settings.initial_records or self._expected_records(expected_rate))
        is_bounded = (settings.max_records or self._usual_records) < self._usual_records
        #: Whether it depends on functions how small epochs are. Whoever bounds them knows these.
        self._goes_by_functions = may_be_slow and settings.initial_records is None and not is_bounded
        #: Whether epochs are small because the speed of functions is not known yet.
        self._is_probing = self._goes_by_functions
        self._records = float(_PROBE_RECORDS) if self._is_probing else self._usual_records
        self._has_observed = False
        #: Whether the last epoch read all that it might, so that more was probably there.
        self._was_full = True
        self._publishing = _PublishingCost()
        self._work = _WorkOfRecords()

    def _expected_records(self, rate: int | None) -> float:
        return _FEW_RECORDS if rate is None else rate * self._settings.target_duration.total_seconds()

    @property
    def max_records(self) -> int:
        """The bound for the next epoch."""
        return self._bounded(self._records)

    @property
    def is_probing(self) -> bool:
        """Whether the next epoch is cut short only to find out how fast functions are."""
        return self._is_probing

    @property
    def cuts_input(self) -> bool:
        """Whether it is that, and input was probably cut that was there already."""
        return self._is_probing and self._was_full

    @property
    def max_early_records(self) -> int:
        """The bound for sources that others wait for: as if nothing were probed."""
        return self._bounded(max(self._records, self._usual_records) if self._is_probing else self._records)

    def _bounded(self, records: float) -> int:
        bound = max(1, int(records))
        return bound if self._settings.max_records is None else min(bound, self._settings.max_records)

    @property
    def max_bytes(self) -> int:
        """The bound for what one source subtask reads in the next epoch, where it is known beforehand.

        It is half of what a subtask may send or receive, for rows in memory are seldom smaller than what is read.
        """
        return max(1, self._settings.max_bytes // 2)

    def read(self, epoch: int, records: int) -> None:
        """An epoch is complete; its busiest source subtask read so many records."""
        self._publishing.read(epoch, records)

    def published(self, epochs: Iterable[int], duration_s: float) -> None:
        """Learn how long it took to publish the output of epochs; with checkpoints that comes later, for several."""
        self._publishing.published(epochs, duration_s)

    def observe(self, *, duration_s: float, work_s: float, most_records: int, most_bytes: int) -> None:
        """Learn from an epoch.

        Args:
            duration_s: How long it took, with all that the driver did for it except publishing.
            work_s: The part of it in which subtasks were at work. The rest is taken not to depend on the records, and
                so is work that epochs of very different sizes have in common.
            most_records: What its busiest source subtask read.
            most_bytes: The most that any subtask sent or received.
        """
        if not most_records:
            return
        target_s = self._settings.target_duration.total_seconds()
        fixed_s = max(0.0, duration_s - work_s)
        variable_s = min(work_s, duration_s) + self._publishing.expected_s(most_records)
        fixed_work_s = self._work.fixed_s(most_records, min(work_s, duration_s))
        may_be_loading = self._is_probing and variable_s <= target_s * _LOADING
        if may_be_loading:
            variable_s = 0.0
        elif self._goes_by_functions and most_records * target_s < _FEW_THAT_FIT * variable_s:
            target_s = min(target_s, max(target_s * _SHORT_PART, fixed_s * _LEAST_TO_FIXED))
        wanted = _fitting(target_s, fixed_s, variable_s)
        if fixed_work_s:
            # It is an estimate, so it makes epochs only a little larger.
            wanted = max(
                wanted,
                min(_LEAST_GROWTH, _fitting(target_s, fixed_s + fixed_work_s, variable_s - fixed_work_s)),
            )
        has_no_backlog = most_records < self.max_records
        self._was_full = not has_no_backlog
        is_first, self._has_observed = not self._has_observed, True
        if (has_no_backlog or is_first) and most_records < _ENOUGH_TO_TELL:
            # It was not so few records that took long: the first epochs load classes and modules.
            wanted = max(1.0, wanted)
        if most_bytes:
            wanted = min(wanted, self._settings.max_bytes / most_bytes)
        if self._is_probing:
            probed = most_records * min(_PROBE_GROWTH, wanted)
            # Fewer may have been read than there were: those of one split of several.
            self._records = max(1.0, probed, self._records if has_no_backlog else 0.0)
            is_slow = variable_s >= _SLOW_S or wanted < _LEAST_GROWTH
            self._is_probing = not is_slow and self._records < self._usual_records
        elif not has_no_backlog or wanted < 1:  # otherwise it says only that this fits, not how much would
            self._records = max(1.0, most_records * min(_MOST_GROWTH, max(_MOST_SHRINKAGE, wanted)))


def _fitting(target_s: float, fixed_s: float, variable_s: float) -> float:
    """Return how many times an epoch's records fit into the target duration.

    If starting an epoch takes longer than the target allows, smaller epochs would only get less done.
    """
    return max(target_s - fixed_s, target_s * _LEAST_WORK) / max(variable_s, _SHORTEST_S)


class _WorkOfRecords:
    """Which part of the work of an epoch its records cause, where epochs of very different sizes tell.

        records  work
          800    2.2 s
          400    2.1 s
          200    2.0 s    so 200 records take 0.1 s, and tasks work for 1.9 s whatever they read

    On a busy machine, tasks that start slowly would otherwise look like slow records: epochs would shrink to one record
    and take as long as before.
    """

    def __init__(self) -> None:
        #: Records and work of the last epochs.
        self._epochs: deque[tuple[int, float]] = deque(maxlen=_EPOCHS_TO_COMPARE)

    def fixed_s(self, records: int, work_s: float) -> float:
        """Return how much of an epoch's work its records do not cause; 0 if that is not known, or less than half."""
        self._epochs.append((records, work_s))
        sizes, works = zip(*self._epochs, strict=True)
        if min(sizes) * _DIFFERENT_SIZES > max(sizes):
            return 0.0
        of_record_s, _ = linear_regression(sizes, works)
        fixed_s = work_s - max(0.0, of_record_s) * records
        return fixed_s if fixed_s * 2 > work_s else 0.0


class _PublishingCost:
    """What publishing costs per record that a source subtask reads.

    It is charged to every epoch in proportion. Charged to the epoch in which it happened, a checkpoint now and then
    would make that epoch look slow and the others fast.
    """

    def __init__(self) -> None:
        #: Records by epoch, of those that are not published.
        self._unpublished: dict[int, int] = {}
        self._per_record_s = 0.0

    def read(self, epoch: int, records: int) -> None:
        self._unpublished[epoch] = records
        if (
            len(self._unpublished) > _REMEMBERED_EPOCHS
        ):  # nothing of this job is ever published, or very seldom
            del self._unpublished[next(iter(self._unpublished))]

    def published(self, epochs: Iterable[int], duration_s: float) -> None:
        last = max(epochs, default=0)
        # Epochs without output go with those after them; those of a run that failed were read again.
        covered = [number for number in self._unpublished if number <= last]
        records = sum(self._unpublished.pop(number) for number in covered)
        if records:
            now = duration_s / records
            # A cost that rises counts at once; one that falls may be a lucky moment.
            self._per_record_s = max(now, (self._per_record_s + now) / 2)

    def expected_s(self, records: int) -> float:
        return self._per_record_s * records
