"""A server for saved models: `python -m minipaddle serve DIR`. `command.py` begins it; the pieces
are protocol, batcher, runner (the batcher with a clock and threads), repository, app, simulator.
"""
