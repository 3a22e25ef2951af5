#!/bin/sh
# Restart replicas one after the other; each is ready before the next one stops. Clients notice nothing.
#   deploy/rolling_restart.sh 8787 8788
set -eu
for port in "$@"; do
    systemctl restart "doral@$port"  # returns when it is ready: ExecStartPost
    sleep 3  # so that the balancer asks it again
done
