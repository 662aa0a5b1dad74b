#!/bin/sh
# A Slurm cluster of two nodes on this machine, in the foreground: sh slurm_cluster.sh FOLDER PORT PORT PORT
#
# Debian's munged, slurmctld and one slurmd a node, with all that they keep in FOLDER; the caller ends what this starts (the daemons of
# job steps too, so it must be their adoptive parent). Two slurmd on one machine need their own name, port, spool and TmpFS, where PMIx
# makes folders of the same name for each. linuxproc and task/none need no cgroup and no root; config_overrides lets nodes have more cores than
# the machine. Each node has a switch of its own below a common one.
# Source: slurm.conf(5), slurmd(8) -N, topology.conf(5), munged(8).
set -eu
folder=$1 user=$(id -un) host=$(uname -n | cut -d. -f1)
export SLURM_CONF="$folder/slurm.conf"
mkdir -p "$folder/munge" "$folder/state" "$folder/spool/n0" "$folder/spool/n1" "$folder/tmp/n0" "$folder/tmp/n1" "$folder/log"
chmod 711 "$folder/munge"
cat >"$SLURM_CONF" <<END
ClusterName=test
SlurmctldHost=$host(127.0.0.1)
SlurmctldPort=$2
SlurmUser=$user
SlurmdUser=$user
AuthType=auth/munge
AuthInfo=socket=$folder/munge/socket
CredType=cred/munge
MpiDefault=none
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool/%n
TmpFS=$folder/tmp/%n
SlurmctldPidFile=$folder/log/slurmctld.pid
SlurmdPidFile=$folder/log/%n.pid
SlurmctldLogFile=$folder/log/slurmctld
SlurmdLogFile=$folder/log/%n
SlurmdParameters=config_overrides
MailProg=/bin/true
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
TopologyPlugin=topology/tree
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
ReturnToService=2
KillWait=2
NodeName=n0 NodeHostname=$host NodeAddr=127.0.0.1 Port=$3 CPUs=4
NodeName=n1 NodeHostname=$host NodeAddr=127.0.0.1 Port=$4 CPUs=4
PartitionName=all Nodes=ALL Default=YES State=UP
END
cat >"$folder/topology.conf" <<END
SwitchName=s0 Nodes=n0
SwitchName=s1 Nodes=n1
SwitchName=top Switches=s[0-1]
END
mungekey --create --keyfile="$folder/munge/key"
# --force: the log and the key may lie below a folder that others may write, as all temporary folders do.
munged --force --foreground --key-file="$folder/munge/key" --socket="$folder/munge/socket" --pid-file="$folder/munge/pid" \
    --log-file="$folder/munge/log" --seed-file="$folder/munge/seed" &
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ -S "$folder/munge/socket" ] && break
    sleep 0.5
done
slurmctld -D -i &
slurmd -D -N n0 &
slurmd -D -N n1 &
wait
