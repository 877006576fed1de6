"""Tools for tests: gradients against central differences."""

from .gradcheck import check_grad

__all__ = ["check_grad"]
