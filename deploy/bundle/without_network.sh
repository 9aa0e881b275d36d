#!/usr/bin/env bash
# Proves that a bundle is enough: sets this project up from it in a network namespace without a route, in an empty
# home folder, with the system's Chromium, fonts and libnuma hidden, and runs a notebook there.
#     deploy/bundle/without_network.sh course-bundle          the set-up, the doctor and notebook 1
#     deploy/bundle/without_network.sh course-bundle all      the set-up and all six notebooks
# It needs Linux with unshare and ip, and leaves nothing behind; KEEP=1 keeps its folder.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bundle=$(cd "${1:?name the folder that make bundle wrote}" && pwd)
which=${2:-01}
work=$(mktemp -d)
trap '[ -n "${KEEP:-}" ] && echo "kept: $work" || rm -rf "$work"' EXIT

# What git tracks, and what is new and not ignored: a clone with the changes of today.
mkdir -p "$work/course" "$work/home"
git -C "$root" ls-files -z --cached --others --exclude-standard \
  | (cd "$root" && tar --null --ignore-failed-read -cf - -T - 2>/dev/null) | tar -xf - -C "$work/course"
python=$(readlink -f "$("$root/.venv/bin/python" -c 'import sys; print(sys._base_executable)')")

cat > "$work/inside.sh" <<INSIDE
set -eu
ip link set lo up
if ip route get 192.0.2.1 2>/dev/null; then echo "there is a route"; exit 1; fi
for folder in /usr/lib/chromium /usr/share/fonts; do
  [ ! -d \$folder ] || mount -t tmpfs hidden \$folder
done
for library in /lib/*/libnuma.so.1 /usr/lib/*/libnuma.so.1 /lib/*/libnss3.so; do
  [ ! -e \$library ] || mount --bind /dev/null \$library
done
cd "$work/course"
time make setup BUNDLE="$bundle"
if [ "$which" = all ]; then time make course; else time make course NB="$which"; fi
INSIDE

# A user who is not root gets a name space of users, too.
as_root=(); [ "$(id -u)" = 0 ] || as_root=(--map-root-user)
env -i HOME="$work/home" PATH="$(dirname "$python"):/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin" LANG=C.UTF-8 TERM=dumb \
  COURSE_PYTHON="$python" COURSE_SCALE="${COURSE_SCALE:-demo}" COURSE_DEVICE="${COURSE_DEVICE:-}" \
  unshare --net --mount "${as_root[@]}" bash "$work/inside.sh"
du -sh "$bundle"
