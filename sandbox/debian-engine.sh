#!/usr/bin/env bash
# Gives a Debian 12 or 13 machine all that the sandbox needs, without any image registry: a container
# engine that is new enough, gVisor, bubblewrap, and a base image made of Debian's own packages.
# Run it as root, as often as you like: what is there already is left alone.
set -euo pipefail

SUITE=trixie     # Debian 12's own engine, 20.10, is too old for us and for Inspect
BASE_SUITE=bookworm
BASE_IMAGE=podium-base
OLDEST=24.0.6
CONFIG=/etc/docker/daemon.json
LOG=/var/log/podium-dockerd.log

say() { printf '[%4ds] %s\n' "$SECONDS" "$*"; }

refuse() {
  echo "debian-engine.sh: $*" >&2
  exit 3
}

has() { command -v "$1" >/dev/null; }

install_packages() {
  DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

# Prints where this machine gets Debian's packages from, as its own sources say.
debian_mirror() {
  apt-get indextargets --format "\$(COMPONENT) \$(RELEASE) \$(REPO_URI)" 'Created-By: Packages' |
    awk '$1 == "main" && $2 ~ /^(bookworm|trixie|stable|oldstable)$/ { print $3; exit }'
}

add_suite() {
  if apt-get indextargets --format "\$(RELEASE)" | grep -qx "$SUITE"; then
    return
  fi
  say "Adding Debian's suite $SUITE to the package sources, never preferred over the machine's own"
  cat >"/etc/apt/sources.list.d/podium-$SUITE.sources" <<SOURCE
Types: deb
URIs: $mirror
Suites: $SUITE
Components: main
Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg
SOURCE
  printf 'Package: *\nPin: release n=%s\nPin-Priority: 100\n' "$SUITE" \
    >"/etc/apt/preferences.d/podium-$SUITE"
}

new_enough() {
  has dockerd && dpkg --compare-versions \
    "$(dockerd --version | sed -E 's/.* version ([0-9.]+).*/\1/')" ge "$OLDEST"
}

install_engine() {
  local wanted=() helpers=()
  new_enough || wanted+=(docker.io)
  has docker || wanted+=(docker-cli)
  docker compose version >/dev/null 2>&1 || wanted+=(docker-compose)
  has runsc || wanted+=(runsc)
  has debootstrap || helpers+=(debootstrap)
  has bwrap || helpers+=(bubblewrap)
  if ((${#wanted[@]} + ${#helpers[@]} == 0)); then
    say "The engine, gVisor and bubblewrap are installed"
    return
  fi
  add_suite
  say "Installing ${wanted[*]} ${helpers[*]}"
  apt-get update -qq
  if ((${#wanted[@]})); then install_packages -t "$SUITE" "${wanted[@]}"; fi
  if ((${#helpers[@]})); then install_packages "${helpers[@]}"; fi
}

# Our containers have no network and gVisor needs none; it cannot always create cgroups of its own.
register_gvisor() {
  if [[ -f $CONFIG ]] && grep -q '"runsc"' "$CONFIG"; then
    say "gVisor is registered in $CONFIG"
    return
  fi
  say "Registering gVisor in $CONFIG"
  mkdir -p "$(dirname "$CONFIG")"
  python3 - "$CONFIG" "$(command -v runsc)" <<'PYTHON'
import json
import sys
from pathlib import Path

path = Path(sys.argv[1])
config = json.loads(path.read_text()) if path.exists() and path.read_text().strip() else {}
arguments = ["--network=none", "--ignore-cgroups"]
config.setdefault("runtimes", {})["runsc"] = {"path": sys.argv[2], "runtimeArgs": arguments}
path.write_text(json.dumps(config, indent=2) + "\n")
PYTHON
  if pid=$(pidof -s dockerd); then kill -HUP "$pid"; fi # it reads its runtimes again
}

answers() { docker version >/dev/null 2>&1; }

start_engine() {
  if answers; then
    say "The engine answers"
    return
  fi
  if [[ -d /run/systemd/system ]]; then
    say "Starting the engine, with systemd"
    systemctl start docker
  else
    say "Starting the engine; it writes to $LOG"
    setsid nohup dockerd --iptables=false --bridge=none >"$LOG" 2>&1 </dev/null &
  fi
  for _ in {1..300}; do
    answers && return
    sleep 0.2
  done
  tail -n 5 "$LOG" >&2 || true
  echo "debian-engine.sh: the engine does not answer after a minute; its last output is above." >&2
  exit 1
}

make_base() {
  if docker image inspect "$BASE_IMAGE" >/dev/null 2>&1; then
    say "The base image $BASE_IMAGE is there"
    return
  fi
  say "Making the base image $BASE_IMAGE: Debian $BASE_SUITE with python3"
  local root
  root=$(mktemp -d)
  # shellcheck disable=SC2064
  trap "rm -rf '$root'" EXIT
  if ! debootstrap --variant=minbase --include=python3 "$BASE_SUITE" "$root/base" "$mirror" \
    >"$root/log" 2>&1; then
    tail -n 5 "$root/log" >&2
    echo "debian-engine.sh: debootstrap failed; its last output is above." >&2
    exit 1
  fi
  rm -rf "$root"/base/var/cache/apt/* "$root"/base/var/lib/apt/lists/* "$root"/base/var/log/*
  tar -C "$root/base" --sort=name --numeric-owner -c . |
    docker import --change 'CMD ["python3"]' - "$BASE_IMAGE" >/dev/null
}

[[ $(id -u) == 0 ]] || refuse "installing a container engine needs root: run it with sudo."
if ! has apt-get || ! grep -qx 'ID=debian' /etc/os-release 2>/dev/null; then
  refuse "this machine is not Debian: install Docker Engine $OLDEST or newer in its own way."
fi
mirror=$(debian_mirror)
[[ -n $mirror ]] || refuse "this machine's package sources name no Debian suite to take packages from."

install_engine
register_gvisor
start_engine
make_base
say "Ready: Docker Engine $(docker version --format '{{.Server.Version}}')"
