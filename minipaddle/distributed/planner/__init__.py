"""Plans for large models: how a job is laid out on a cluster, what it costs, what comes next."""

from .figures import Figures, figures
