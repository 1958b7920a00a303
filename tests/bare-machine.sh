#!/bin/sh
# Runs the README's two commands, as they stand there, on a bare Debian 12: a minimal root made by debootstrap, the tree as
# committed, none of the tools that configure calls optional but not installed by it (nvcc), no shared corpus.
#
#     tests/bare-machine.sh [quick]     as root; `quick` runs make check where the README has make check-all
#
# Needs debootstrap, and apt sources that work here: the root gets the same mirror and apt's proxy settings.
# ROOT=DIR keeps the root (and takes one that is there already); DEADLINE=600 are the seconds that the first command may take.
set -eu
src=$(cd "$(dirname "$0")/.." && pwd)
deadline=${DEADLINE:-600}
demo=$(sed -n 's/^ *\(\.\/configure .* make demo\)$/\1/p' "$src/README.md")
check=$(sed -n 's/^ *\(\.\/configure .* make check-all\)$/\1/p' "$src/README.md")
if [ -z "$demo" ] || [ -z "$check" ]; then
	echo "bare-machine: the README's two commands are not where they were" >&2
	exit 2
fi
[ "${1:-}" != quick ] || check=${check%-all}

if [ "$(id -u)" != 0 ] || ! command -v debootstrap >/dev/null; then
	echo "bare-machine: needs root and debootstrap" >&2
	exit 2
fi

# The first Debian mirror that apt uses, in either format of its sources.
mirror=$(cat /etc/apt/sources.list /etc/apt/sources.list.d/* 2>/dev/null |
	sed -n -e 's/^URIs: *\(http[^ ]*debian\)\/* *$/\1/p' -e 's/^deb \(\[[^]]*\] \)\{0,1\}\(http[^ ]*debian\)\/* .*/\2/p' | head -n 1)
mirror=${mirror:-http://deb.debian.org/debian}

root=${ROOT:-}
[ -n "$root" ] || root=$(mktemp -d "${TMPDIR:-/tmp}/pdcc-bare.XXXXXX")

leave() {
	for m in dev/shm dev proc; do
		umount -l "$root/$m" 2>/dev/null || :
	done
	[ -n "${ROOT:-}" ] || rm -rf --one-file-system "$root"
}
trap leave EXIT
trap 'exit 1' INT TERM

if [ ! -x "$root/bin/sh" ]; then
	echo "bare-machine: a minimal Debian 12 from $mirror in $root"
	debootstrap --variant=minbase bookworm "$root" "$mirror" >"$root.log" 2>&1 || {
		tail -n 20 "$root.log" >&2
		exit 1
	}
	rm -f "$root.log"
fi

# What makes apt work here makes it work there: sources, proxies, names, certificates.
echo "deb $mirror bookworm main" >"$root/etc/apt/sources.list"
grep -lsi 'acquire' /etc/apt/apt.conf /etc/apt/apt.conf.d/* | while read -r f; do
	cp "$f" "$root/etc/apt/apt.conf.d/"
done
cp -L /etc/resolv.conf /etc/hosts "$root/etc/"
if [ -d /etc/ssl/certs ]; then
	mkdir -p "$root/etc/ssl/certs"
	cp -L /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/" 2>/dev/null || :
fi

mkdir -p "$root/dev/shm" "$root/proc"
mount --bind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t proc proc "$root/proc"

rm -rf "$root/pdcc"
mkdir "$root/pdcc"
git -C "$src" archive HEAD | tar -x -C "$root/pdcc"

# timed COMMAND: runs it in the root, sets `seconds`.
timed() {
	echo "bare-machine: $1"
	start=$(date +%s)
	status=0
	chroot "$root" /usr/bin/env HOME=/root TMPDIR=/tmp PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C \
		sh -c "cd /pdcc && $1" || status=$?
	seconds=$(($(date +%s) - start))
	echo "bare-machine: exit status $status after $seconds s"
	[ "$status" = 0 ] || exit 1
}

timed "$demo"
if [ "$seconds" -gt "$deadline" ]; then
	echo "bare-machine: more than $deadline s" >&2
	exit 1
fi
timed "$check"
