#!/usr/bin/env bash
# Builds docker/Dockerfile by buildah, without a daemon, and asks the viewer in it about a dump:
#
#     tests/platforms/container.sh DUMP [OPTION of `buildah bud` ...]
#
# Run as root, with buildah and curl. Where the registry of the base image does not answer, debootstrap makes one of the
# same name from Debian's packages.
set -euo pipefail
cd "$(dirname "$0")/../.."
dump=$(realpath "$1")
shift
export STORAGE_DRIVER=vfs BUILDAH_ISOLATION=chroot
base=docker.io/library/debian:bookworm-slim
folder=$(mktemp -d)
container=
end() {
    test -z "$container" || buildah rm "$container" > /dev/null
    rm -rf "$folder"
}
trap end EXIT

if ! buildah inspect --type image "$base" > /dev/null 2>&1 && ! buildah pull "$base" > /dev/null 2>&1; then
    echo "no registry: the base is made by debootstrap"
    debootstrap --variant=minbase bookworm "$folder/root" > /dev/null
    scratch=$(buildah from scratch)
    buildah add --quiet "$scratch" "$folder/root" / > /dev/null
    buildah commit --quiet "$scratch" "$base" > /dev/null
    buildah rm "$scratch" > /dev/null
fi
buildah bud --quiet "$@" -f docker/Dockerfile -t msdump . > /dev/null
container=$(buildah from localhost/msdump)
run() { buildah run -v "$dump:/dump:ro" "$container" -- "$@"; }
run id
run /usr/local/bin/msdump-entry --version
run du -sh /opt/msdump

# It ends by itself: a signal to `buildah run` does not reach it.
run timeout 60 /usr/local/bin/msdump-entry view /dump > "$folder/said" &
for _ in $(seq 100); do
    url=$(grep -o 'http://[^ ]*' "$folder/said") && break
    sleep 0.3
done
curl --silent --fail --cookie-jar "$folder/cookies" --location "$url" | grep -q '<div id="app">'
until curl --silent --fail --cookie "$folder/cookies" http://127.0.0.1:8000/api/progress | grep -q '"ready"'; do sleep 0.3; done
curl --silent --fail --cookie "$folder/cookies" http://127.0.0.1:8000/api/overview | head -c 400
echo
wait
