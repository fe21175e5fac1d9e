#!/bin/sh
# Opt-in: PgBouncer for the scenarios that go through a pooler, from Debian's archive. Wants root.
set -eu
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends pgbouncer
# The package starts a service of its own; the scenarios start theirs.
if command -v systemctl >/dev/null 2>&1; then systemctl disable --now pgbouncer || true; fi
pgbouncer --version
