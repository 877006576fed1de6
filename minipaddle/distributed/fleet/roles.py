"""The role of a process in a job with parameter servers: worker or server, and its number."""

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
    """A role from the script: `role`, `current_id`, `worker_num`, `server_endpoints`.

    Only the number of the servers' endpoints counts: MPI or Ray know the addresses.

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
        self.assign(
            kwargs.get("role", Role.WORKER), kwargs.get("current_id", 0), workers,
            len(kwargs.get("server_endpoints", ())) or 1,
        )  # fmt: skip

    def assign(self, role: int, current_id: int, workers: int, servers: int) -> None:
        """Set the role; ValueError for a number that does not exist."""
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
    """The role from the environment, which Paddle's launcher sets.

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
            return self.assign(Role.WORKER, 0, 1, 1)
        workers, training_role = int(read("PADDLE_TRAINERS_NUM")), read("TRAINING_ROLE")
        if training_role == "TRAINER":
            number, role = int(read("PADDLE_TRAINER_ID")), Role.WORKER
        elif training_role == "PSERVER":
            endpoint, role = f"{read('POD_IP')}:{read('PADDLE_PORT')}", Role.SERVER
            if endpoint not in endpoints:
                raise value_error(f"the server {endpoint}", expected=f"one of {endpoints}")
            number = endpoints.index(endpoint)
        else:
            raise not_supported(f"TRAINING_ROLE={training_role}", expected="TRAINER or PSERVER")
        self.assign(role, number, workers, len(endpoints))


def read(name: str, default: str | None = None) -> str:
    """Read a variable of the environment; ValueError if it is not set and has no default."""
    value = os.environ.get(name, default)
    if value is None:
        raise value_error(
            f"a job with parameter servers without {name}",
            hint="python -m minipaddle.distributed.launch --server_num 1 --trainer_num 2 train.py",
        )
    return value
