"""Operators: nn."""

from __future__ import annotations
