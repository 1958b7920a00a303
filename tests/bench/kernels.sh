#!/bin/sh
# Checks the kernel templates against plain loops, or measures them against the machine's peak.
# Usage: kernels.sh GENERATOR check|time [ISA]...   GENERATOR is built from kernels.c: `make check-kernels`, `make bench-kernels`.
# CC, CFLAGS and WORK (a folder) may be set in the environment. Instruction sets that this machine lacks are left out.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
generator=$1 what=$2
shift 2
[ $# -gt 0 ] || set -- generic sse4 avx2 avx512
work=$(cd "${WORK:-$(dirname "$generator")}" && pwd)
cc=${CC:-cc}
optimise=-O3
[ "$what" = time ] || optimise=-O2

flags_of() {
	case $1 in
	generic) echo ;;
	sse4) echo -msse4.2 ;;
	avx2) echo -mavx2 -mfma ;;
	avx512) echo -mavx512f -mavx512bw -mavx512vl -mavx512dq -mfma ;;
	*) echo "unknown instruction set $1" >&2; exit 2 ;;
	esac
}

runs_here() {
	case $1 in
	generic) return 0 ;;
	sse4) grep -qw sse4_2 /proc/cpuinfo ;;
	avx512) grep -qw avx512dq /proc/cpuinfo ;;
	*) grep -qw "$1" /proc/cpuinfo ;;
	esac
}

bad=0
for isa; do
	if ! runs_here "$isa"; then
		echo "$isa: not on this machine"
		continue
	fi
	"$generator" "$isa" "$what" > "$work/kernels_$isa.c"
	# shellcheck disable=SC2046,SC2086
	$cc -std=c11 $optimise -Wall -Wextra -fno-math-errno -ffp-contract=fast $(flags_of "$isa") ${CFLAGS:-} "-I$here/../.." \
		"-DINSTANCES=\"$work/kernels_$isa.c\"" "$here/kernels_run.c" -o "$work/kernels_$isa" -lm
	echo "$isa:"
	"$work/kernels_$isa" "$what" || bad=1
done
exit $bad
