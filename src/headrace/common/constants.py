"""Numbers and names that several parts share, as in `pyflink.common.constants`."""

from __future__ import annotations

from typing import Final

__all__ = ["DEFAULT_OUTPUT_TAG", "MAX_LONG_VALUE", "MIN_LONG_VALUE"]

#: The largest timestamp; as a watermark it says that nothing more will come.
MAX_LONG_VALUE: Final = 2**63 - 1
#: The smallest timestamp; the watermark of a stream that has not seen any.
MIN_LONG_VALUE: Final = -(2**63)
#: The tag that stands for the main output where outputs are distinguished by tag.
DEFAULT_OUTPUT_TAG: Final = "__main__"
