#!/usr/bin/env bash
# Three nodes of a Ray cluster, by hand. `ray-cluster.sh head` on one machine, `ray-cluster.sh node HOST`
# on two more; then, on the head, `podium run ... --launcher ray --address HOST:6379`.
# Every machine has podium[ray], the log directory under the same path, and providers' keys in the
# environment that this is started in. Who reaches the port runs programs as you: keep it in a closed
# network, or see `ray get-auth-token --generate` and RAY_AUTH_MODE=token.
set -euo pipefail

port=6379
case ${1:?say head, node HOST or stop} in
  head) ray start --head --port="$port" --include-dashboard=false --disable-usage-stats ;;
  node) ray start --address="${2:?say which machine is the head}:$port" --disable-usage-stats ;;
  stop) ray stop ;;
  *)
    echo "say head, node HOST or stop, not $1" >&2
    exit 2
    ;;
esac
