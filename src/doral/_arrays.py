"""Names for the array types that kernels and their callers pass around."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
Bits: TypeAlias = NDArray[np.uint8]  # 1 = yes
Record: TypeAlias = Any  # one structured scalar: NumPy types give its fields no names
