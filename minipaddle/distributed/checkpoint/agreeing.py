"""Agreement of ranks: an error of one rank becomes an error of all."""

from ...engine.distributed.process_group import ProcessGroup
from ..collectives.python_objects import all_gather_object, receive_object, send_object

TAG = 23294
"""The tag of messages: a thread that writes a checkpoint sends them while its rank computes."""
KINDS = {e.__name__: e for e in (FileNotFoundError, OSError, TypeError, ValueError)}


def attempt(work) -> list:
    """[what `work()` returns], or [the kind of its error, the text]."""
    try:
        return [work()]
    except Exception as error:
        name = next((name for name, e in KINDS.items() if isinstance(error, e)), "RuntimeError")
        return [name, str(error) if name in KINDS else f"{type(error).__name__}: {error}"]


def raise_or_return(answer: list, who: str = ""):
    """Return the result of an attempt; raise its error."""
    if len(answer) == 1:
        return answer[0]
    error_name, message = answer
    raise KINDS.get(error_name, RuntimeError)(who + message)


def outcomes(answers: list, here: ProcessGroup) -> list:
    """The results of all ranks; raise the error of the first that has one, with its number."""
    alone = here.size == 1
    return [raise_or_return(a, "" if alone else f"rank {r}: ") for r, a in zip(here.ranks, answers)]


def run_together(here: ProcessGroup, work) -> list:
    """Gather the results of `work()` in all ranks to all. If it raises in one, all ranks raise."""
    answers: list = []
    all_gather_object(answers, attempt(work), here)
    return outcomes(answers, here)


def decide_together(here: ProcessGroup, root: int, work, decide) -> list:
    """Attempt `decide(answers)` in the rank `root`, and send the outcome to all: the answers are
    the attempts of all ranks at `work()`.

    Messages carry it, so that it runs beside the collectives of the ranks.
    """
    mine = attempt(work)
    if here.rank != root:
        send_object(here, mine, root, TAG)
        return receive_object(here, root, TAG)
    answers = [mine if r == root else receive_object(here, r, TAG) for r in range(here.size)]
    verdict = attempt(lambda: decide(answers))
    for r in range(here.size):
        if r != root:
            send_object(here, verdict, r, TAG)
    return verdict
