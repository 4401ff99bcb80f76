#!/bin/sh
# Installs coder in a dev container, as root. Copy the repository's install.sh beside this
# file as install-coder.sh before you publish the feature.
set -eu
exec sh "$(dirname "$0")/install-coder.sh" "${ARCHIVE:?the feature needs the option archive}" --prefix /usr/local
