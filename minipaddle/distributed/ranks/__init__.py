"""Ranks: their groups, and how they start and communicate (threads, MPI, NCCL)."""
