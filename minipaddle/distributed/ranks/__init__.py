"""Who the ranks are: the groups of a rank, and how ranks start and talk (threads, MPI, NCCL)."""
