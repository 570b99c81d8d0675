#!/usr/bin/env bash
# Start a throw-away Slurm of Debian's packages on this machine, as root, without systemd, accounting or cgroups.
#   start.sh STATE_DIR [NODES]
# NODES (2) slurmd run side by side, each with 16 declared CPUs and two stand-in GPUs. Partitions: `cpu` and `gpu`, whose
# jobs are requeued when a job of `urgent` wants their place. Refuses to touch a Slurm that it did not start.
# /etc/slurm is the only place that works: the executor plugin drops SLURM_CONF on the way to a job.
set -euo pipefail

state=${1:?usage: start.sh STATE_DIR [NODES]}
nodes=${2:-2}
mark="# made by MaskLab's tests/slurm/start.sh"
[ "$(id -u)" = 0 ] || { echo "start.sh: needs root"; exit 1; }
if [ -e /etc/slurm/slurm.conf ] && ! grep -qF "$mark" /etc/slurm/slurm.conf; then
  echo "start.sh: this machine has a Slurm of its own (/etc/slurm/slurm.conf)"; exit 1
fi
unset SLURM_CONF
if ! command -v slurmctld slurmd munged sbatch >/dev/null; then
  # 77: no Slurm can be had here, which is no fault of the project's
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends slurm-wlm munge
  } >/dev/null || { echo "start.sh: Debian's packages slurm-wlm and munge cannot be installed"; exit 77; }
fi
mkdir -p "$state"/{ctld,log}
state=$(realpath "$state")
host=$(hostname -s)

# The package's postinst makes the key; only the socket's folder is missing. A munged that runs already is left alone.
install -d -o munge -g munge -m 0755 /run/munge
if ! munge -n >/dev/null 2>&1; then
  runuser -u munge -- /usr/sbin/munged
  touch "$state/munged"
fi
for _ in $(seq 50); do munge -n >/dev/null 2>&1 && break; sleep 0.1; done

# cred_expire: a requeued job waits that long. KillWait: from SIGTERM to SIGKILL. EnforcePartLimits: an impossible
# request is an error and does not wait for ever. MinJobAge: squeue remembers finished jobs.
install -d /etc/slurm
cat > /etc/slurm/slurm.conf <<CONF
$mark
ClusterName=masklab
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
MailProg=/bin/true
AuthType=auth/munge
AuthInfo=cred_expire=5
CredType=cred/munge
SwitchType=switch/none
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0
PreemptType=preempt/partition_prio
PreemptMode=REQUEUE
ReturnToService=2
EnforcePartLimits=ALL
MinJobAge=3600
KillWait=15
SlurmdTimeout=10
SlurmctldPort=16817
SlurmctldPidFile=$state/slurmctld.pid
SlurmdPidFile=$state/slurmd-%n.pid
StateSaveLocation=$state/ctld
SlurmdSpoolDir=$state/spool-%n
SlurmctldLogFile=$state/log/slurmctld.log
SlurmdLogFile=$state/log/slurmd-%n.log
GresTypes=gpu
CONF
: > /etc/slurm/gres.conf
devices=(/dev/null /dev/zero /dev/full /dev/random)  # a count alone is refused: each GPU needs a file that exists
names=()
for number in $(seq "$nodes"); do
  name=n$number
  names+=("$name")
  mkdir -p "$state/spool-$name"
  echo "NodeName=$name NodeHostname=$host NodeAddr=127.0.0.1 Port=$((16900 + number)) CPUs=16 RealMemory=256000" \
    "Gres=gpu:2 State=UNKNOWN" >> /etc/slurm/slurm.conf
  for device in "${devices[@]:$(((number - 1) % 2 * 2)):2}"; do
    echo "NodeName=$name Name=gpu File=$device" >> /etc/slurm/gres.conf
  done
done
all=$(IFS=,; echo "${names[*]}")
cat >> /etc/slurm/slurm.conf <<CONF
PartitionName=cpu Nodes=$all Default=YES MaxTime=INFINITE PriorityTier=1 State=UP
PartitionName=gpu Nodes=$all MaxTime=INFINITE PriorityTier=1 State=UP
PartitionName=urgent Nodes=$all MaxTime=INFINITE PriorityTier=10 PreemptMode=OFF State=UP
CONF
# Slurm before 23.11 knows no `disabled`; cgroup/v1 is loaded there and not used.
version=$(slurmctld -V | awk '{print $2}')
plugin=disabled
[ "$(printf '%s\n' 23.11 "$version" | sort -V | head -1)" = 23.11 ] || plugin=cgroup/v1
echo "CgroupPlugin=$plugin" > /etc/slurm/cgroup.conf

slurmctld
for name in "${names[@]}"; do slurmd -N "$name"; done
for _ in $(seq 100); do
  [ "$(sinfo -h -N -o %t 2>/dev/null | sort -u)" = idle ] && break
  sleep 0.1
done
[ "$(sinfo -h -N -o %t | sort -u)" = idle ] || { sinfo -R; cat "$state"/log/*.log; exit 1; }
sinfo -o "%P %N %t %c %m %G"
