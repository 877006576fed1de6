"""Servers that are actors of Ray's, on any machine of its cluster (the extra `ray`).

Ray starts an actor again that died: it begins from its files, and Ray sends it the requests again
that were not answered. What it has done already it acknowledges only.
"""

from __future__ import annotations

import asyncio
import importlib
import os

from ...engine.core.errors import teach
from .server import Server, ServerLost


def ray():
    """The module `ray`; RuntimeError if it is not installed."""
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise RuntimeError(
            teach(f"no Ray: {error}", hint='pip install "minipaddle[ray]"')
        ) from None


class Actor:
    """A server in a process of its own."""

    def __init__(self, index: int, servers: int, workers: int, folder: str | None):
        again = ray().get_runtime_context().was_current_actor_reconstructed
        if again and folder is None:
            raise ServerLost(f"server {index} has died, and it had no files")
        self.server = Server(index, servers, workers, folder, anew=not again)

    async def ask(self, request: dict):
        """The answer of the server, which may have to wait for requests of others."""
        return await asyncio.wrap_future(self.server.handle(request))


class Answer:
    """The answer of an actor."""

    def __init__(self, reference):
        self.reference = reference

    def result(self, timeout: float):
        """Wait for it; raises the error that the server had."""
        try:
            return ray().get(self.reference, timeout=timeout)
        except ray().exceptions.RayTaskError as error:
            raise error.cause from error
        except ray().exceptions.RayActorError as error:
            raise ServerLost(str(error)) from error


class Ray:
    """Servers as actors of the job `name`: the first that asks for one makes it."""

    def __init__(self, servers: int = 1, workers: int = 1, folder=None, name: str = "job"):
        self.servers, self.name = servers, name
        if not ray().is_initialized():
            own = {} if "RAY_ADDRESS" in os.environ else {"include_dashboard": False}
            ray().init(log_to_driver=False, **own)
        make = ray().remote(Actor).options(
            num_cpus=0, max_restarts=-1, max_task_retries=-1, get_if_exists=True
        )  # fmt: skip
        self.actors = [
            make.options(name=f"{name} server {k}").remote(k, servers, workers, folder)
            for k in range(servers)
        ]

    def ask(self, server: int, request: dict) -> Answer:
        """Send a request to a server."""
        return Answer(self.actors[server].ask.remote(request))

    def kill(self, server: int) -> None:
        """Kill the process of a server; Ray starts it again."""
        ray().kill(self.actors[server], no_restart=False)

    def recover(self, server: int) -> None:
        """Ray does it."""
        raise ServerLost(teach(f"server {server} has died, and Ray did not bring it back"))

    def end(self) -> None:
        """End the servers."""
        for actor in self.actors:
            ray().kill(actor)
