#!/bin/bash
# sbatch deploy/slurm.sh runs/gpt
# Two machines with four ranks each. When ranks or a machine are lost, the job goes on with the
# others from its last checkpoint; a job that Slurm stops and starts again goes on, too. The folder
# of the checkpoints must be one that all machines see.
#SBATCH --job-name=minipaddle
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=2
#SBATCH --mem-per-cpu=2G
#SBATCH --time=12:00:00
#SBATCH --output=%x-%j.out
#SBATCH --open-mode=append
#SBATCH --requeue
#SBATCH --no-kill
set -euo pipefail

export OMP_NUM_THREADS="$SLURM_CPUS_PER_TASK"
machines=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | paste -sd,)

# mpiexec starts its processes on the machines by srun; it finds out that Slurm is there. Where
# Slurm itself shall start the ranks (and none is started again):
#   srun --mpi=pmi2 python -m mpi4py deploy/train.py runs/gpt
exec python -m minipaddle.distributed.launch --ips "$machines" --nnodes "1:$SLURM_JOB_NUM_NODES" \
    --nproc "$SLURM_NTASKS_PER_NODE" --max_restart 5 --elastic_level 2 --elastic_timeout 60 \
    deploy/train.py "$@" --steps 2000 --every 100
