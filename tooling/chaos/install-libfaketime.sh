#!/bin/sh
# Opt-in: libfaketime, which puts the clocks of whole processes off, from Debian's archive. Wants root.
set -eu
apt-get update
DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends libfaketime
