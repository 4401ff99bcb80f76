#!/bin/sh
# Has coder work on a task and pushes the result as a branch. A task may come from
# strangers: it is data on stdin, and coder gets no credentials of the repository.
#
#   fix.sh BRANCH TASKFILE [FLAGS OF coder]
#
# Exit codes: those of coder; 0 also if there was nothing to change. Nothing is pushed
# unless coder ended with 0.
set -eu
[ $# -ge 2 ] || { echo 'fix.sh BRANCH TASKFILE [FLAGS]' >&2; exit 2; }
branch=$1 task=$2
shift 2

# No hook or helper that a command of the model left behind runs with the credentials of the push.
git() { command git -c core.hooksPath=/dev/null -c core.fsmonitor=false "$@"; }

start=$(git rev-parse HEAD)
git switch --quiet --create "$branch"
coder -p --bare --auto-approve --require-verified "$@" \
	'Do the task below in this repository. Do not commit.' <"$task"

git add --all
if [ "$start" = "$(git rev-parse HEAD)" ] && git diff --cached --quiet; then
	echo 'fix.sh: nothing changed' >&2
	exit 0
fi
git diff --cached --quiet || git commit --quiet --message "Do the task of $branch" --message 'Written by coder; not reviewed yet.'
git push --quiet origin "HEAD:refs/heads/$branch"
