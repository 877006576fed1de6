"""Who a process is in a job with parameter servers: a worker or a server, and its number."""

from __future__ import annotations

import os

from ...engine.core.errors import not_supported, value_error


class Role:
    """The kinds of processes.

    >>> from minipaddle.distributed import fleet
    >>> fleet.Role.WORKER, fleet.Role.SERVER
    (1, 2)
    """

    WORKER, SERVER = 1, 2


class UserDefinedRoleMaker:
    """A role that the script gives: `role`, `current_id`, `worker_num`, `server_endpoints`.

    The servers' endpoints are only counted: MPI or Ray know where they are.

    >>> from minipaddle.distributed import fleet
    >>> fleet.UserDefinedRoleMaker(current_id=1, worker_num=2, server_endpoints=["here"])
    worker 1 of 2, with 1 server
    """

    def __init__(self, is_collective: bool = False, init_gloo: bool = False, **kwargs):
        known = {"current_id", "role", "worker_num", "server_endpoints", "worker_endpoints"}
        if kwargs.keys() - known:
            raise value_error(f"a role with {min(kwargs.keys() - known)}", f"{sorted(known)}")
        self.is_collective = is_collective
        workers = kwargs.get("worker_num") or len(kwargs.get("worker_endpoints", ())) or 1
        self.take(
            kwargs.get("role", Role.WORKER), kwargs.get("current_id", 0), workers,
            len(kwargs.get("server_endpoints", ())) or 1,
        )  # fmt: skip

    def take(self, role: int, current_id: int, workers: int, servers: int) -> None:
        """Have a role; ValueError for a number that does not exist."""
        if role not in (Role.WORKER, Role.SERVER):
            raise not_supported(f"the role {role}", expected="Role.WORKER or Role.SERVER")
        many = workers if role == Role.WORKER else servers
        if not 0 <= current_id < many:
            raise value_error(f"number {current_id} of {many}", expected=f"0 to {many - 1}")
        self.role, self.current_id, self.workers, self.servers = role, current_id, workers, servers

    @property
    def is_server(self) -> bool:
        """Is this a server, and no worker?"""
        return self.role == Role.SERVER

    def __repr__(self) -> str:
        s = "" if self.servers == 1 else "s"
        if self.is_server:
            return f"server {self.current_id} of {self.servers}"
        return f"worker {self.current_id} of {self.workers}, with {self.servers} server{s}"


class PaddleCloudRoleMaker(UserDefinedRoleMaker):
    """The role that the environment gives, as Paddle's launcher sets it.

    TRAINING_ROLE is TRAINER or PSERVER; PADDLE_PSERVERS_IP_PORT_LIST has an entry for each server,
    PADDLE_TRAINERS_NUM says how many workers there are, PADDLE_TRAINER_ID which of them this is. A
    server is the entry POD_IP:PADDLE_PORT. Without a list of servers this is the only worker, and
    the server is in its process.

    >>> from minipaddle.distributed import fleet
    >>> fleet.PaddleCloudRoleMaker()
    worker 0 of 1, with 1 server
    """

    def __init__(self, is_collective: bool = False, **kwargs):
        self.is_collective = is_collective
        endpoints = list(filter(None, read("PADDLE_PSERVERS_IP_PORT_LIST", "").split(",")))
        if not endpoints or is_collective:
            return self.take(Role.WORKER, 0, 1, 1)
        workers, kind = int(read("PADDLE_TRAINERS_NUM")), read("TRAINING_ROLE")
        if kind == "TRAINER":
            number, role = int(read("PADDLE_TRAINER_ID")), Role.WORKER
        elif kind == "PSERVER":
            own, role = f"{read('POD_IP')}:{read('PADDLE_PORT')}", Role.SERVER
            if own not in endpoints:
                raise value_error(f"the server {own}", expected=f"one of {endpoints}")
            number = endpoints.index(own)
        else:
            raise not_supported(f"TRAINING_ROLE={kind}", expected="TRAINER or PSERVER")
        self.take(role, number, workers, len(endpoints))


def read(name: str, default: str | None = None) -> str:
    """A variable of the environment; ValueError if it is not set and has no default."""
    value = os.environ.get(name, default)
    if value is None:
        raise value_error(
            f"a job with parameter servers without {name}",
            hint="python -m minipaddle.distributed.launch --server_num 1 --trainer_num 2 train.py",
        )
    return value
