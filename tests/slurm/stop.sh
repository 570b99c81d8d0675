#!/usr/bin/env bash
# Stop what start.sh started and remove what it wrote; packages stay. Does nothing to a Slurm that is not its own.
#   stop.sh STATE_DIR
set -uo pipefail
state=${1:?usage: stop.sh STATE_DIR}
if grep -qsF "# made by MaskLab's tests/slurm/start.sh" /etc/slurm/slurm.conf; then
  scancel --full --signal=KILL --user root 2>/dev/null
  scancel --user root 2>/dev/null
  for _ in $(seq 50); do [ -z "$(squeue -h -t R,CG 2>/dev/null)" ] && break; sleep 0.1; done
  for file in "$state"/slurmd-*.pid "$state"/slurmctld.pid; do
    [ -f "$file" ] || continue
    pid=$(cat "$file")
    kill "$pid" 2>/dev/null
    for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
  done
  rm -f /etc/slurm/{slurm,gres,cgroup}.conf
fi
if [ -e "$state/munged" ]; then runuser -u munge -- /usr/sbin/munged --stop 2>/dev/null; fi
rm -rf "$state"
exit 0
