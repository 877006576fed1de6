"""Pipelines: a model in stages, one for each rank, and micro-batches that flow through them.

A schedule is the order in which a stage computes. It is data: one list of jobs for each stage,
which the simulator, the pictures and the ranks all read.
"""
