"""Operators: random."""

from __future__ import annotations
