"""Arrow and NumPy arrays over the same memory.

Arrow's own ways from one to the other import pandas, to see whether they have to do with its series.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from pyarrow import Array


def over(numbers: NDArray[Any]) -> Array:
    """Return an Arrow array of the same numbers."""
    import pyarrow as pa

    kind, held = pa.from_numpy_dtype(numbers.dtype), np.ascontiguousarray(numbers)
    return pa.Array.from_buffers(kind, len(held), [None, pa.py_buffer(held)])


def whole_numbers(array: Array) -> NDArray[np.int64]:
    """Return the numbers of an array that has one in every place."""
    import pyarrow as pa

    held = array.cast(pa.int64())
    if not len(held):
        return np.zeros(0, np.int64)
    return np.frombuffer(held.buffers()[1], np.int64, len(held), 8 * held.offset)
