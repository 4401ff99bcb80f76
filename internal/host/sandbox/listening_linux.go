package sandbox

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Listening lists the sockets of this machine by their full paths on which
// programs listen now, as far as the system tells. Of those below root the ones of
// our own confined processes, such as a server left running, are not among them.
func Listening(root string) (list []string) {
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil
	}
	const flags, kind, inode, path, accepts, datagrams = 3, 4, 6, 7, "00010000", "0002"
	var dirs []string // where processes work: a socket may be known by a name within
	var own map[string]bool
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) <= path || fields[flags] != accepts && fields[kind] != datagrams {
			continue
		}
		name := strings.Join(fields[path:], " ")
		names := []string{name}
		switch {
		case strings.HasPrefix(name, "@"):
			continue // it has no file
		case !filepath.IsAbs(name):
			if dirs == nil {
				dirs = workDirs()
			}
			names = nil
			for _, dir := range dirs {
				if at := filepath.Join(dir, name); exists(at) {
					names = append(names, at)
				}
			}
		}
		for _, at := range names {
			if within(filepath.Clean(at), root) {
				if own == nil {
					own = confinedSockets()
				}
				if own[fields[inode]] {
					continue
				}
			}
			list = append(list, filepath.Clean(at))
		}
	}
	return list
}

// workDirs are the working directories of all processes that may be looked at.
func workDirs() (dirs []string) {
	links, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, link := range links {
		if dir, err := os.Readlink(link); err == nil {
			dirs = append(dirs, dir)
		}
	}
	slices.Sort(dirs)
	return slices.Compact(dirs)
}

// confinedSockets are the sockets, by their inodes, of processes below us that are
// confined.
func confinedSockets() map[string]bool {
	found := make(map[string]bool)
	for _, p := range descendants(processNumber()) {
		at := "/proc/" + p.number
		if status, err := os.ReadFile(at + "/status"); err != nil || !strings.Contains(string(status), "\nSeccomp:\t2\n") {
			continue
		}
		files, _ := filepath.Glob(at + "/fd/*")
		for _, file := range files {
			if to, err := os.Readlink(file); err == nil && strings.HasPrefix(to, "socket:[") {
				found[strings.TrimSuffix(strings.TrimPrefix(to, "socket:["), "]")] = true
			}
		}
	}
	return found
}
