"""GEO: what a worker sends that takes its steps alone.

In GEO (geo-distributed) training a worker has rows of its own. It takes k steps on them without
talking to anybody, then sends the servers how far it came, and gets back what the rows are now. The
server *adds* what comes to its rows, from any worker. Write `geo_delta(local, base, workers)`:

- `local` are the worker's rows after its steps, [n, width], `base` the same rows as the server gave
  them to it before. Both stay as they are;
- `workers` is how many workers there are;
- return what the worker sends, [n, width], of the dtype of `local`.

If all workers begin with the same rows, and all send once, the server's rows have to be the mean of
the workers' rows. If only one of them changed a row, it moves by its share.

    local [[3.0, 1.0]], base [[1.0, 1.0]], 4 workers  ->  [[0.5, 0.0]]

Source: Paddle's GEO mode (`a_sync_configs = {"k_steps": k}`); McMahan et al.,
"Communication-efficient learning of deep networks from decentralized data", 2017.
"""


def geo_delta(local, base, workers: int):
    """What a worker sends: its part of how far the mean came."""
    return (local - base) / workers
