"""A server for saved models: `python -m minipaddle serve DIR`. `command.py` begins it.

What comes in passes connections (sockets), gate (token, places), app (routes), parameters and
protocol (what clients may say), and waits in the batcher, which the runner gives a clock and
threads; repository and loading load models, completions and writer write texts; simulator runs the
batcher on paper.
"""
