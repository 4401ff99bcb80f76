package sandbox

import (
	"path/filepath"
	"strings"
)

// profile is the policy for sandbox-exec. Later rules win over earlier ones.
// The machine's loopback cannot be told from one of the command's own, so
// without network there is none.
func profile(p places) string {
	var b strings.Builder
	b.WriteString("(version 1)\n(allow default)\n(deny file-write*)\n")
	b.WriteString("(allow file-write* (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/tty\") (literal \"/dev/ptmx\") (subpath \"/dev/fd\") (regex #\"^/dev/ttys[0-9]+$\"))\n")
	for _, path := range p.write {
		b.WriteString("(allow file-write* (subpath " + quote(path) + "))\n")
	}
	for _, path := range p.write {
		b.WriteString("(deny file-write-unlink (literal " + quote(path) + "))\n")
	}
	for _, path := range p.pins() {
		b.WriteString("(deny file-write-unlink (literal " + quote(path) + "))\n")
	}
	for _, path := range p.protect {
		b.WriteString("(deny file-write* (literal " + quote(path) + ") (subpath " + quote(path) + "))\n")
	}
	if !p.network {
		b.WriteString("(deny network*)\n")
		for _, path := range p.write {
			b.WriteString("(allow network* (local unix-socket (subpath " + quote(path) + ")) (remote unix-socket (subpath " + quote(path) + ")))\n")
		}
	}
	b.WriteString("(deny appleevent-send)\n")
	for _, path := range p.hide {
		b.WriteString("(deny file-read* file-write* (literal " + quote(path) + "))\n")
	}
	for _, path := range p.empty {
		b.WriteString("(deny file-read-data file-write* (subpath " + quote(path) + "))\n")
	}
	for _, path := range p.show {
		b.WriteString("(allow file-read* (subpath " + quote(path) + "))\n")
	}
	for _, path := range p.hide {
		b.WriteString("(deny network-outbound (remote unix-socket (path-literal " + quote(path) + ")))\n")
	}
	return b.String()
}

// quote writes a path as a string of the profile's language.
func quote(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(filepath.Clean(path)) + `"`
}
