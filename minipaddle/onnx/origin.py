"""The origin of a record, as text in a file."""

import os

from ..engine.core.errors import line_of
from ..engine.core.record import Record


def layer_path(record: Record) -> str:
    """The layers that were being called, from the outermost: `GPT/Block/Linear`."""
    names, chain = [], record.scope
    while chain is not None:
        chain, layer, _ = chain
        names.append(type(layer).__name__ if not isinstance(layer, str) else layer)
    return "/".join(reversed(names))


def short_line(record: Record) -> str:
    """`net.py:12, in forward`, without the folders of this machine."""
    if not record.where:
        return ""
    file, _, rest = line_of(record.where).rpartition(os.sep)
    return rest if file else line_of(record.where)
