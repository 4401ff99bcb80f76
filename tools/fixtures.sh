#!/bin/sh
# fixtures.sh COMMIT... packs sessions that earlier versions of coder wrote, for the tests:
# it builds each commit from the history in a throw-away folder and has it play a few
# sessions. Records name the folder they were written in, so that folder is always
# /tmp/coder-fixture/COMMIT, and the key that signs them is made there and is used nowhere else.
set -eu
repo=$(git rev-parse --show-toplevel)
out=$repo/cmd/coder/testdata/fixtures
base=/tmp/coder-fixture
# The name of this machine as a word, for a short one may be part of a checksum by chance.
machine="(^|[^A-Za-z0-9_-])$(uname -n | sed 's/[.]/\\./g')([^A-Za-z0-9_-]|\$)"
mkdir -p "$out" "$base"
git -C "$repo" worktree prune # an earlier run may have been stopped
trap 'rm -rf "${place:-}"; rmdir "$base" 2>/dev/null' EXIT

play() { # NAME SCRIPT ARGUMENTS: one run of the program, which may end with a refusal or a question
	name=$1 script=$2
	shift 2
	printf '%b' "$script" >"$place/script"
	(cd "$place/ws" && env -i HOME="$place/home" PATH=/usr/bin:/bin TERM=dumb LANG=C.UTF-8 "$place/coder" -p --script "$place/script" "$@") \
		>>"$place/log" 2>&1 || [ $? -ge 30 ] || { echo "$name failed:"; cat "$place/log"; exit 1; }
}

for commit; do
	place=$base/$commit
	rm -rf "$place"
	mkdir -p "$place/home" "$place/ws"
	git -C "$repo" worktree add --quiet --detach "$place/src" "$commit"
	(cd "$place/src" && CGO_ENABLED=0 go build -trimpath -o "$place/coder" ./cmd/coder)
	git -C "$repo" worktree remove --force "$place/src"

	printf 'one\ntwo\n' >"$place/ws/a.txt"
	play edit 'call read {"path": "a.txt"}\n---\ncall edit {"path": "a.txt", "old": "two", "new": "2"}\n---\ncall write {"path": "b.txt", "content": "made\\n"}\n---\nsay edited' \
		--auto-approve --session-id edit 'change two'
	play edit 'call bash {"command": "echo by a command > c.txt"}\n---\nsay ran' --auto-approve -r edit 'run it'
	play agent 'call task {"agent": "explore", "description": "look", "prompt": "look at a.txt"}\n---\nsay reported\n---\nto look at a.txt\ncall read {"path": "a.txt"}\n---\nto look at a.txt\nsay it has two lines' \
		--auto-approve --session-id agent 'ask somebody'
	play asked 'call bash {"command": "touch asked"}\n---\nsay never' --on-ask park --session-id asked 'touch it'
	play denied 'call bash {"command": "touch denied"}\n---\nsay refused then' --session-id denied 'touch it'
	play approved 'call bash {"command": "touch approved"}\n---\nsay never' --on-ask park --session-id approved 'touch it'
	question=$(grep -ho '"interactionId":"[^"]*"' "$place/ws/.coder/log/approved/events.jsonl" | head -n 1 | cut -d'"' -f4)
	printf 'say touched' >"$place/script"
	(cd "$place/ws" && env -i HOME="$place/home" PATH=/usr/bin:/bin TERM=dumb LANG=C.UTF-8 "$place/coder" respond "$question" --option approve --script "$place/script") >>"$place/log" 2>&1
	play undone 'call write {"path": "d.txt", "content": "gone\\n"}\n---\nsay written' --auto-approve --session-id undone 'write d'
	play undone 'say nothing' -r undone '/undo'

	# Locks name the machine, and caches are made again.
	for lock in "$place"/ws/.coder/log/*/lock; do echo '{"pid":0,"host":""}' >"$lock"; done
	rm -rf "$place/ws/.coder/cache" "$place/ws/.coder/tmp" "$place/home/.coder/cache" "$place/home/.cache"
	if grep -rIlF "$repo" "$place/ws" "$place/home" || grep -rIlE "$machine" "$place/ws" "$place/home"; then
		echo "these files name this machine"
		exit 1
	fi
	tar -C "$place" --sort=name --mtime=2026-11-01 --owner=0 --group=0 --numeric-owner -cf - home ws | gzip -9n >"$out/$commit.tar.gz"
	rm -rf "$place"
done
ls -l "$out"
