"""Operators: conv."""

from __future__ import annotations
