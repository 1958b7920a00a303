#!/bin/sh
# Checks the direction of includes: ir/ knows nobody; frontend/ and lower/ know ir/; codegen/ knows ir/ and
# lower/lower.h; runtime_stub/ knows nobody. The driver's files alone see everything.
cd "$(dirname "$0")/.." || exit 1
status=0

# forbid FILES PATTERN WHY
forbid() {
	if grep -nE "^#include \"$2" $1 /dev/null; then
		echo "layers: $3"
		status=1
	fi
}

driver='driver.h|options.h'
front=$(ls frontend/*.c frontend/*.h | xargs grep -LE "#include \"($driver)\"" | grep -v -e driver.h -e options.h)
forbid "$(echo ir/*.[ch])" '\.\./' 'ir/ includes another folder'
forbid "$front" '\.\./(lower|codegen)' 'the frontend proper includes lowering or code generation'
forbid "$(echo lower/*.[ch])" '\.\./(frontend|codegen)' 'lower/ includes the frontend or code generation'
forbid "$(echo codegen/*.[ch])" '\.\./(frontend|lower/[^l]|lower/l[^o])' 'codegen/ includes more than ir/ and lower/lower.h'
forbid "$(echo runtime_stub/*.[ch])" '(\.\./|ir/)' 'the runtime stub includes the compiler'
exit $status
