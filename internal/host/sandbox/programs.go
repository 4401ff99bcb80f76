package sandbox

import (
	"path/filepath"
	"slices"
	"strings"
)

// bwrapArgs returns the bwrap arguments that set up the file system, up to the command. The PID
// namespace is the command's own and ends with it.
func bwrapArgs(p resolvedLimits) []string {
	args := []string{"--ro-bind", "/", "/", "--dev", "/dev", "--unshare-pid", "--unshare-ipc", "--proc", "/proc",
		"--die-with-parent"}
	if !p.network {
		args = append(args, "--unshare-net")
	}
	for _, path := range p.write {
		args = append(args, bindFlag(path), path, path)
	}
	for _, path := range p.pinnedDirs() {
		args = append(args, "--bind", path, path)
	}
	for _, path := range p.protect {
		args = append(args, "--ro-bind", path, path)
	}
	for _, l := range p.layers() {
		for _, path := range l.empty {
			args = append(args, "--tmpfs", path)
		}
		for _, path := range l.show {
			if slices.Contains(p.write, path) {
				args = append(args, bindFlag(path), path, path)
			} else {
				args = append(args, "--ro-bind", path, path)
			}
		}
	}
	for _, path := range p.hide {
		args = append(args, "--ro-bind", "/dev/null", path)
	}
	for _, path := range slices.Concat(p.nestedEmpty, p.empty) {
		args = append(args, "--remount-ro", path)
	}
	return append(args, "--")
}

// bindFlag returns the bind option for a path; it allows the use of devices.
func bindFlag(path string) string {
	if isWithin(path, "/dev") {
		return "--dev-bind"
	}
	return "--bind"
}

// seatbeltProfile returns the policy for sandbox-exec. Later rules override earlier ones. Since the machine's
// loopback looks like one of the command's own, no network also means no loopback.
func seatbeltProfile(p resolvedLimits) string {
	var b strings.Builder
	b.WriteString("(version 1)\n(allow default)\n(deny file-write*)\n")
	b.WriteString("(allow file-write* (literal \"/dev/null\") (literal \"/dev/zero\") (literal \"/dev/tty\") (literal \"/dev/ptmx\") (subpath \"/dev/fd\") (regex #\"^/dev/ttys[0-9]+$\"))\n")
	escape := strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`)
	each := func(paths []string, rule string) {
		for _, path := range paths {
			b.WriteString(strings.ReplaceAll(rule, "PATH", `"`+escape.Replace(filepath.Clean(path))+`"`) + "\n")
		}
	}
	each(p.write, "(allow file-write* (subpath PATH))")
	each(p.write, "(deny file-write-unlink (literal PATH))")
	each(p.pinnedDirs(), "(deny file-write-unlink (literal PATH))")
	each(p.protect, "(deny file-write* (literal PATH) (subpath PATH))")
	if !p.network {
		b.WriteString("(deny network*)\n")
		each(p.write, "(allow network* (local unix-socket (subpath PATH)) (remote unix-socket (subpath PATH)))")
	}
	b.WriteString("(deny appleevent-send)\n")
	each(p.hide, "(deny file-read* file-write* (literal PATH))")
	for _, l := range p.layers() {
		each(l.empty, "(deny file-read-data file-write* (subpath PATH))")
		each(l.show, "(allow file-read* (subpath PATH))")
	}
	each(p.hide, "(deny network-outbound (remote unix-socket (path-literal PATH)))")
	return b.String()
}
