"""Operators: indexing."""

from __future__ import annotations
