#!/bin/sh
# Installs coder from an archive of a release, for you alone and without root:
#
#   sh install.sh FILE|ADDRESS [--prefix DIR]
#
# FILE or ADDRESS names the archive; the file SHA256SUMS must be beside it. The
# program, its manual page and its completions go below DIR (default: $PREFIX, else
# ~/.local). Nothing is changed before the checksum holds.
set -eu

fail() {
	echo "install.sh: $*" >&2
	exit 1
}

from='' prefix=${PREFIX:-}
while [ $# -gt 0 ]; do
	case $1 in
	--prefix) [ $# -gt 1 ] || fail '--prefix needs a folder'; prefix=$2; shift ;;
	--prefix=*) prefix=${1#--prefix=} ;;
	-h | --help) sed -n '2,8s/^# \{0,1\}//p' "$0"; exit 0 ;;
	-*) fail "unknown option $1" ;;
	*) [ -z "$from" ] || fail 'name one archive'; from=$1 ;;
	esac
	shift
done
[ -n "$from" ] || fail 'name the archive: sh install.sh FILE|ADDRESS [--prefix DIR]'
if [ -z "$prefix" ]; then
	[ -n "${HOME:-}" ] || fail 'HOME is not set: name a folder with --prefix DIR'
	prefix=$HOME/.local
fi
case $prefix in
/*) ;;
*) prefix=$PWD/$prefix ;;
esac

work=$(mktemp -d "${TMPDIR:-/tmp}/coder-install.XXXXXX") || fail 'cannot make a temporary folder'
new=''
clean() {
	rm -rf "$work"
	[ -z "$new" ] || rm -f "$new"
}
trap clean EXIT
trap 'exit 130' HUP INT TERM

# fetch ADDRESS FILE: the download is whole, or this fails.
fetch() {
	if command -v curl >/dev/null 2>&1; then
		curl --fail --silent --show-error --location --max-redirs 5 --output "$2" "$1" || fail "cannot download $1"
	elif command -v wget >/dev/null 2>&1; then
		wget -q -O "$2" "$1" || fail "cannot download $1"
	else
		fail 'curl or wget is needed to download'
	fi
}

case $from in
https://* | http://127.0.0.1[:/]* | http://localhost[:/]* | 'http://[::1]'*)
	name=${from##*/}
	echo "Downloading $from"
	fetch "${from%/*}/SHA256SUMS" "$work/SHA256SUMS"
	fetch "$from" "$work/archive"
	;;
http://*) fail "$from is not encrypted: use an https address, or download the archive and name the file" ;;
*)
	[ -f "$from" ] || fail "there is no file $from"
	name=${from##*/}
	case $from in
	*/*) beside=${from%/*} ;;
	*) beside=. ;;
	esac
	[ -f "$beside/SHA256SUMS" ] || fail "SHA256SUMS is missing beside $from: download it from the same place"
	cp "$from" "$work/archive" || fail "cannot read $from"
	cp "$beside/SHA256SUMS" "$work/SHA256SUMS"
	;;
esac

want=$(awk -v name="$name" '{ f = $2; sub(/^\*/, "", f) } f == name && length($1) == 64 { print $1 }' "$work/SHA256SUMS")
[ -n "$want" ] || fail "SHA256SUMS has no line for $name"
if command -v sha256sum >/dev/null 2>&1; then
	got=$(sha256sum <"$work/archive")
elif command -v shasum >/dev/null 2>&1; then
	got=$(shasum -a 256 <"$work/archive")
else
	got=$(openssl dgst -sha256 -r <"$work/archive") || fail 'sha256sum, shasum or openssl is needed to check the archive'
fi
[ "${got%% *}" = "$want" ] || fail "the checksum of $name is wrong: the archive is damaged or not the one that was released"

# What the archive holds lies below one folder, and nothing in it leads out.
tar -tzf "$work/archive" >"$work/list" 2>/dev/null || fail "$name is no archive of coder"
if grep -E '^/|(^|/)\.\.(/|$)' "$work/list" >/dev/null; then
	fail "$name holds files that lead out of it"
fi
mkdir "$work/tree"
tar -xzf "$work/archive" -C "$work/tree" 2>/dev/null || fail "cannot unpack $name: is the disk full?"
set -- "$work"/tree/*/bin/coder
if [ $# -ne 1 ] || [ ! -f "$1" ] || [ -L "$1" ]; then
	fail "$name holds no coder"
fi
tree=${1%/bin/coder}
version=$(HOME=$work CODER_HOME=$work/none "$tree/bin/coder" --version 2>/dev/null) || fail "$name does not run here: is it for another system than $(uname -s) $(uname -m)?"

# put FILE PLACE MODE: PLACE is the old file or the new one, never a part.
put() {
	mkdir -p "${2%/*}" 2>/dev/null || fail "cannot make the folder ${2%/*}"
	new=${2%/*}/.new-coder-$$
	{ cp "$1" "$new" && chmod "$3" "$new" && mv -f "$new" "$2"; } 2>"$work/why" || fail "cannot write $2: $(tail -n 1 "$work/why")"
	new=''
}
# also TARGET PLACE: a second name for what is there.
also() {
	ln -sf "$1" "$2" 2>/dev/null || fail "cannot write $2"
}

echo "archive $name" >"$work/installed"
if [ -d "$tree/share" ]; then
	(cd "$tree" && find share -type f) >"$work/files"
else
	: >"$work/files"
fi
while IFS= read -r file; do
	put "$tree/$file" "$prefix/$file" 644
done <"$work/files"
put "$work/installed" "$prefix/share/coder/installed" 644
put "$tree/bin/coder" "$prefix/bin/coder" 755
also coder "$prefix/bin/coder-agent"
also coder.1 "$prefix/share/man/man1/coder-agent.1"
[ ! -f "$tree/share/bash-completion/completions/coder" ] || also coder "$prefix/share/bash-completion/completions/coder-agent"
[ ! -f "$tree/share/fish/vendor_completions.d/coder.fish" ] || also coder.fish "$prefix/share/fish/vendor_completions.d/coder-agent.fish"

echo "Installed $version"
echo "  program      $prefix/bin/coder (second name: coder-agent)"
echo "  manual page  $prefix/share/man/man1/coder.1"
echo "  completions  $prefix/share: bash, zsh, fish"
case :$PATH: in
*":$prefix/bin:"*)
	found=$(command -v coder || true)
	if [ "$found" != "$prefix/bin/coder" ]; then
		echo "PATH finds another coder first: $found. Use coder-agent, or put $prefix/bin first."
	fi
	;;
*) echo "PATH lacks $prefix/bin. Add to ~/.profile: export PATH=\"$prefix/bin:\$PATH\"" ;;
esac
echo 'To remove it: coder uninstall shows what there is.'
