"""The files of weights that programs look for: MiniPaddle downloads nothing, it finds local files.

Source: Paddle API `paddle.utils.download`.
"""

import hashlib
import re
from pathlib import Path

from ..core.files import require_file
from ..engine.core.errors import teach, value_error

__all__ = ["WEIGHTS_HOME", "get_path_from_url", "get_weights_path_from_url", "is_url"]

WEIGHTS_HOME = str(Path("~/.cache/paddle/hapi/weights").expanduser())


def is_url(path: str) -> bool:
    """Does it start as an address of the network does?

    >>> paddle.utils.download.is_url("weights.pdparams")
    False
    """
    return path.startswith(("http://", "https://"))


def get_weights_path_from_url(url: str, md5sum: str | None = None) -> str:
    """The path of a file of weights in `WEIGHTS_HOME`; raises as `get_path_from_url` does."""
    return get_path_from_url(url, WEIGHTS_HOME, md5sum)


def get_path_from_url(
    url: str, root_dir: str, md5sum=None, check_exist=True, decompress=True, method="get"
) -> str:
    """The file or, of an archive, the folder of this name in `root_dir`.

    Raises FileNotFoundError, with where to put it, if it is not there: nothing is downloaded;
    ValueError if `md5sum` is another than the file's.

    >>> get = paddle.utils.download.get_path_from_url
    >>> get("https://there/vit.pdparams", "/weights")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    FileNotFoundError: MiniPaddle downloads nothing: https://there/vit.pdparams
    ...
      try: download it yourself to /weights/vit.pdparams
    """
    path = Path(root_dir) / url.rpartition("/")[2]
    folder = Path(re.sub(r"(\.tar(\.\w+)?|\.tgz|\.zip)$", "", str(path)))
    if decompress and folder != path and folder.is_dir():
        return str(folder)
    if not path.exists() or (decompress and folder != path):
        what = f"unpack it to {folder}" if decompress and folder != path else f"to {path}"
        raise FileNotFoundError(
            teach(f"MiniPaddle downloads nothing: {url}", hint=f"download it yourself {what}")
        )
    require_file(str(path))
    if md5sum and hashlib.md5(path.read_bytes()).hexdigest() != md5sum:
        raise value_error(f"{path} has another MD5 sum than {md5sum}", hint="download again")
    return str(path)


def _get_unique_endpoints(trainer_endpoints: list[str]) -> set[str]:
    """One address "ip:port" of each machine, the first in order of text: it fetches for the others.

    >>> paddle.utils.download._get_unique_endpoints(["10.0.0.1:8001", "10.0.0.1:8000"])
    {'10.0.0.1:8000'}
    """
    last_first = sorted(trainer_endpoints, reverse=True)
    return set({endpoint.partition(":")[0]: endpoint for endpoint in last_first}.values())
