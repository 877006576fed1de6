"""Operators: activation."""

from __future__ import annotations
