#!/usr/bin/env bash
# A run in shards on SLURM: this job is the head, which cuts the run, lends its shards dollars and hands
# each of them in as a job of one core. Submit it again to go on: `sbatch slurm.sh`.
#SBATCH --job-name=podium
#SBATCH --cpus-per-task=1
#SBATCH --time=2-00:00:00
set -euo pipefail

# On storage that all nodes see. Providers' keys come from the environment, which sbatch passes on to
# jobs; they are in no file of the run.
LOG_DIR=${LOG_DIR:?say where the run lies, on storage that all nodes see}
PARTITION=${PARTITION:?say on which partition shards run}

podium run --pool "${POOL:-rehearsal}" --suite practice-integer --suite practice-composed \
  --system single --system best-single --system moa-lite \
  --log-dir "$LOG_DIR" --shards "${SHARDS:-16}" --launcher slurm --address "$PARTITION" \
  ${MAX_USD:+--max-usd "$MAX_USD"} --display none

podium report "$LOG_DIR"
podium audit "$LOG_DIR"
