#!/bin/sh
# deploy/apply.sh FILE.yaml NAME@sha256:…
# Applies a file of this folder with an image by its digest, which `docker push NAME` prints, and
# docker buildx imagetools inspect NAME --format '{{.Manifest.Digest}}'
set -eu
if ! printf '%s\n' "${2-}" | grep -Eqx '[^@|&[:space:]]+@sha256:[0-9a-f]{64}'; then
    echo "apply.sh: the image ${2-} has no digest: expected NAME@sha256:…" >&2
    exit 1
fi
sed "s|IMAGE@DIGEST|$2|" "$1" | kubectl apply -f -
