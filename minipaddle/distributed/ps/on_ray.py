"""Servers that are actors of Ray's, on any machine of its cluster (the extra `ray`).

Ray starts an actor again that died: it begins from its files, and Ray sends it the requests again
that were not answered. What it has done already it acknowledges only. The actors belong to the
worker that asks for them first: they end with its process, which therefore leaves last.

    ray start --head
    export RAY_ADDRESS=auto MINIPADDLE_PS_CARRIER=ray MINIPADDLE_PS_FOLDER=/shared/tables
    python -m minipaddle.distributed.launch --server_num 2 --trainer_num 2 train.py
"""

import asyncio
import importlib
import os
from contextlib import suppress

from ...engine.core.errors import runtime_error, teach
from .server import RowServer, ServerLost


def ray():
    """The module `ray`; RuntimeError if it is not installed."""
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise runtime_error(f"no Ray: {error}", hint='pip install "minipaddle[ray]"') from None


class Actor:
    """A server in a process of its own."""

    def __init__(self, index: int, servers: int, workers: int, folder: str | None):
        again = ray().get_runtime_context().was_current_actor_reconstructed
        if again and folder is None:
            raise ServerLost(f"server {index} has died, and it had no files")
        self.server = RowServer(index, servers, workers, folder, anew=not again)

    async def ask(self, request: dict):
        """The answer of the server, which may have to wait for requests of others."""
        return await asyncio.wrap_future(self.server.handle(request))

    async def until_all_stopped(self, timeout: float) -> None:
        """Wait until all workers have stopped; TimeoutError if one hangs."""
        while not self.server.ended.is_set():
            self.server.check_workers(timeout)
            await asyncio.sleep(0.1)


class RayAnswer:
    """The answer of an actor."""

    def __init__(self, reference):
        self.reference = reference

    def result(self, timeout: float | None):
        """Wait for the answer, without a limit if None; raise the server's error."""
        try:
            return ray().get(self.reference, timeout=timeout)
        except ray().exceptions.RayTaskError as error:
            raise error.cause from error
        except ray().exceptions.RayActorError as error:
            raise ServerLost(str(error)) from error


class Ray:
    """Servers as actors of the job `name` (PADDLE_JOB_ID): the first worker to ask makes them.
    One worker alone starts Ray on this machine if there is no cluster; RuntimeError for several.
    """

    def __init__(self, servers: int = 1, workers: int = 1, folder=None, name: str = "job"):
        self.servers, self.name = servers, name
        if not ray().is_initialized():
            connect(workers)
        make = ray().remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(Actor)
        known = {"namespace": "minipaddle", "get_if_exists": True}
        self.actors = [
            make.options(name=f"{name} server {k}", **known).remote(k, servers, workers, folder)
            for k in range(servers)
        ]

    def ask(self, server: int, request: dict) -> RayAnswer:
        """Send a request to a server."""
        return RayAnswer(self.actors[server].ask.remote(request))

    def recover(self, server: int) -> None:
        """Do nothing: Ray restarts the actor."""
        raise ServerLost(teach(f"server {server} has died, and Ray did not bring it back"))

    def end(self, timeout: float) -> None:
        """Wait until all workers have stopped; then this process may end, and its servers. Raises
        TimeoutError if one hangs.
        """
        with suppress(ServerLost):  # another worker's, which has left
            for actor in self.actors:
                RayAnswer(actor.until_all_stopped.remote(timeout)).result(None)


def connect(workers: int) -> None:
    """Connect to Ray's cluster."""
    alone = workers == 1 and "RAY_ADDRESS" not in os.environ
    where = {"include_dashboard": False} if alone else {"address": "auto"}
    try:
        ray().init(log_to_driver=False, **where)
    except ConnectionError as error:
        raise runtime_error(
            f"{workers} workers, and no cluster of Ray: {error}",
            hint="ray start --head on one machine; RAY_ADDRESS says to the others where it is",
        ) from None
