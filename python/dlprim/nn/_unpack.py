# SPDX-License-Identifier: MIT
"""typing.Unpack, which types the keywords that all layers share; before Python 3.11 only type checkers have it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if sys.version_info >= (3, 11):
    from typing import Unpack
elif TYPE_CHECKING:
    from typing_extensions import Unpack
else:
    Unpack = Any

__all__ = ["Unpack"]
