"""Public functions: linalg."""

from __future__ import annotations

__all__: list[str] = []
NAMESPACE: list[str] = []
