"""`fleet` with parameter servers: the calls of a script that workers and servers run.

fleet.init(role)
...
if fleet.is_server():
    fleet.init_server("folder")
    fleet.run_server()
else:
    fleet.init_worker()
    ...
    fleet.stop_worker()
"""

import os
import threading
from weakref import WeakKeyDictionary

from ...engine.core.errors import not_supported, runtime_error, value_error
from ...engine.core.rank import per_rank
from ..collectives.python_objects import all_gather_object
from ..parallel import init_parallel_env
from ..ps import on_ray
from ..ps.mpi import MPI
from ..ps.server import RowServer
from ..ps.session import Session, session, session_in_use
from ..ps.threads import Threads
from .roles import PaddleCloudRoleMaker, Role
from .strategy import DistributedStrategy

__all__ = [
    "init_server", "init_worker", "is_server", "is_worker", "report", "run_server",
    "save_persistables", "server_index", "server_num", "stop_worker",
]  # fmt: skip

SHARED: WeakKeyDictionary = WeakKeyDictionary()
"""The transport between the threads of one `spawn`, for each of its `fleet.init`."""
LOCK = threading.Lock()

begun = per_rank(0)
"""The number of calls of `fleet.init` by this rank."""


def begin(role_maker, strategy) -> None:
    """Begin a session in this process's role, and gather the roles of the others."""
    role = PaddleCloudRoleMaker() if role_maker is None else role_maker
    session.now = current = Session(role, strategy or DistributedStrategy())
    current.folder = os.environ.get("MINIPADDLE_PS_FOLDER")
    current.group = group = init_parallel_env()
    if group.size == 1 or os.environ.get("MINIPADDLE_PS_CARRIER") == "ray":
        return  # the servers are in this process, or actors
    begun.now += 1
    roles: list = []
    all_gather_object(roles, [role.role, role.current_id, role.workers, role.servers])
    ranks = {(role_number, number): rank for rank, (role_number, number, *_) in enumerate(roles)}
    expected = {(Role.SERVER, k) for k in range(role.servers)}
    expected |= {(Role.WORKER, k) for k in range(role.workers)}
    if {*ranks} != expected or len(roles) != len(ranks):
        raise value_error(
            f"{group.size} ranks, of which {len(ranks)} are different workers and servers",
            expected=f"workers 0 to {role.workers - 1}, servers 0 to {role.servers - 1}",
        )
    if group.backend == "mpi":
        current.carrier = MPI(group, [ranks[Role.SERVER, k] for k in range(role.servers)])
    elif group.backend == "threads":
        with LOCK:
            threads = Threads(role.servers, role.workers, None, absent=range(role.servers))
            current.carrier = SHARED.setdefault(group.world, {}).setdefault(begun.now, threads)
    else:
        raise not_supported(f"parameter servers by {group.backend}", expected="threads, MPI, Ray")


def is_server() -> bool:
    """Is this process a server?

    >>> from minipaddle.distributed import fleet
    >>> fleet.is_server()
    False
    """
    return session.now is not None and session.now.role.is_server


def is_worker() -> bool:
    """Is this process a worker?

    >>> from minipaddle.distributed import fleet
    >>> fleet.is_worker()
    True
    """
    return not is_server()


def server_num() -> int:
    """The number of servers.

    >>> from minipaddle.distributed import fleet
    >>> fleet.server_num()
    0
    """
    return 0 if session.now is None else session.now.role.servers


def server_index() -> int:
    """The number of this server.

    >>> from minipaddle.distributed import fleet
    >>> fleet.server_index()
    Traceback (most recent call last):
    RuntimeError: server_index before fleet.init
    ...
    """
    return session_in_use("server_index").role.current_id


def init_server(dirname: str | None = None, *args, **kwargs) -> None:
    """Set the folder of a server's snapshot and log: it begins with their rows, and loses nothing
    that it acknowledged. Without a folder (nor MINIPADDLE_PS_FOLDER in the environment) it keeps
    its rows in memory. A worker whose servers are in its own process calls it, too.

    >>> from minipaddle.distributed import fleet
    >>> fleet.init_server("folder")
    Traceback (most recent call last):
    RuntimeError: init_server before fleet.init
    ...
    """
    if args or kwargs:
        raise not_supported("init_server with more than a folder", expected="init_server(dirname)")
    current = session_in_use("init_server")
    current.folder = current.folder if dirname is None else os.fspath(dirname)


def run_server() -> None:
    """Serve until all workers have called `stop_worker`. Raises TimeoutError that names a worker
    without a request in the time that ranks wait for each other, while others continue.

    >>> from minipaddle.distributed import fleet
    >>> fleet.run_server()
    Traceback (most recent call last):
    RuntimeError: run_server before fleet.init
    ...
    """
    current = session_in_use("run_server")
    role, carrier = current.role, current.carrier
    if carrier is None or not role.is_server:
        raise runtime_error(
            f"run_server in {role}", hint="Ray, or a lone worker, starts servers itself"
        )
    server = RowServer(role.current_id, role.servers, role.workers, current.folder)
    if isinstance(carrier, MPI):
        return carrier.serve(server)
    carrier.add(server)
    while not server.ended.wait(0.1):
        current.group.check()
        carrier.hosted[server.index].check_workers(current.group.timeout)


def init_worker(scopes=None) -> None:
    """Connect a worker: it creates tables on the servers, and all workers begin with the parameters
    of worker 0, or with the parameters that the servers restored. `scopes` changes nothing here.

    >>> from minipaddle.distributed import fleet
    >>> fleet.init_worker()
    Traceback (most recent call last):
    RuntimeError: init_worker before fleet.init
    ...
    """
    current = session_in_use("init_worker")
    role, timeout = current.role, current.group.timeout
    if role.is_server:
        raise runtime_error("init_worker in a server", expected="fleet.run_server()")
    if os.environ.get("MINIPADDLE_PS_CARRIER") == "ray":
        name = os.environ.get("PADDLE_JOB_ID", "job")
        current.carrier = on_ray.Ray(role.servers, role.workers, current.folder, name)
    elif current.carrier is None:
        current.carrier = Threads(role.servers, role.workers, current.folder)
    elif isinstance(current.carrier, Threads):
        current.carrier.wait_for_all(timeout)
    current.connect(current.carrier, timeout)


def stop_worker() -> None:
    """Leave: the servers end when all workers have.

    >>> from minipaddle.distributed import fleet
    >>> fleet.stop_worker()
    Traceback (most recent call last):
    RuntimeError: stop_worker before fleet.init
    ...
    """
    current = session_in_use("stop_worker")
    current.require_client().stop()
    if isinstance(current.carrier, on_ray.Ray):
        current.carrier.end(current.group.timeout)
    current.client = None


def save_persistables(executor, dirname: str, main_program=None, mode: int = 0) -> None:
    """Write all tables of the servers to a folder that `init_server` reads. One worker calls it.

    `executor`, `main_program` and `mode` change nothing here: the servers have all tables.

    >>> from minipaddle.distributed import fleet
    >>> fleet.save_persistables(None, "folder")
    Traceback (most recent call last):
    RuntimeError: save_persistables before fleet.init
    ...
    """
    session_in_use("save_persistables").require_client().snapshot(os.fspath(dirname))


def report() -> list[dict]:
    """The statistics of each server: `stragglers`, the `seconds` of each worker's latest steps, the
    `staleness` of each worker's pushes (mean, largest), and the `rows` and `steps` of each table.

    Source: `ps/server.py`.

    >>> from minipaddle.distributed import fleet
    >>> fleet.report()
    Traceback (most recent call last):
    RuntimeError: report before fleet.init
    ...
    """
    return session_in_use("report").require_client().report()
