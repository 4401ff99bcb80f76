#!/bin/sh
# Works through a folder of tasks, NAME.txt each: a branch coder/NAME for every task.
#
#   loop.sh REPOSITORY TASKS [FLAGS OF coder]
#
# Every task gets a fresh clone. A failed task does not stop the others; the exit code is
# that of the last failure, and 130 and 41 (interrupted, rejected key) end the loop.
set -eu
[ $# -ge 2 ] || { echo 'loop.sh REPOSITORY TASKS [FLAGS]' >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd) repository=$1 tasks=$(cd "$2" && pwd)
shift 2
failed=0
for task in "$tasks"/*.txt; do
	name=$(basename "$task" .txt)
	git ls-remote --exit-code "$repository" "refs/heads/coder/$name" >/dev/null && continue # done before
	work=$(mktemp -d)
	git clone --quiet "$repository" "$work/clone"
	code=0
	(cd "$work/clone" && sh "$here/fix.sh" "coder/$name" "$task" "$@") || code=$?
	rm -rf "$work"
	echo "$name: exit code $code"
	[ "$code" -eq 0 ] || failed=$code
	case $code in 41 | 130) break ;; esac
done
exit "$failed"
