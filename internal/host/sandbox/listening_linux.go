package sandbox

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

// ListeningSockets returns the full paths of sockets on which programs currently listen, as far as the system
// reports them. Below root it omits coder's own confined processes, such as a server left running.
//
// The system reports the name a socket was bound to. If that name is gone or not unique, every socket
// nearby counts.
func ListeningSockets(root string) []string {
	text, err := os.ReadFile("/proc/net/unix")
	if err != nil {
		return nil
	}
	const flags, kind, inode, path, accepts, datagrams = 3, 4, 6, 7, "00010000", "0002"
	var dirs []string // working directories, to which a bound name may be relative
	var own map[string]bool
	l := listeners{others: make(map[string]int), own: make(map[string]bool)}
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) <= path || fields[flags] != accepts && fields[kind] != datagrams {
			continue
		}
		name := strings.Join(fields[path:], " ")
		names := []string{name}
		switch {
		case strings.HasPrefix(name, "@"):
			continue // not in the file system
		case !filepath.IsAbs(name):
			if dirs == nil {
				dirs = workDirs()
			}
			names = resolveIn(dirs, name)
		}
		for _, at := range names {
			at = filepath.Clean(at)
			if isWithin(at, root) {
				if own == nil {
					own = confinedSockets()
				}
				if own[fields[inode]] {
					l.own[at] = true
					continue
				}
			}
			l.others[at]++
		}
	}
	return l.paths()
}

// resolveIn returns where a relative name may be: the directories that contain it, or all of them if none
// does.
func resolveIn(dirs []string, name string) (all []string) {
	for _, dir := range dirs {
		all = append(all, filepath.Join(dir, name))
	}
	if there := slices.DeleteFunc(slices.Clone(all), func(at string) bool { return !exists(at) }); len(there) > 0 {
		return there
	}
	return all
}

// listeners holds the names that sockets were bound to.
type listeners struct {
	others map[string]int  // unconfined programs' sockets, by name, with their number
	own    map[string]bool // names of coder's own confined processes
}

// paths returns the current paths of the others' sockets.
func (l listeners) paths() (list []string) {
	near := socketSearch{remaining: maxNearby}
	for at, sockets := range l.others {
		info, err := os.Lstat(at)
		there := err == nil && info.Mode()&fs.ModeSocket != 0
		if there {
			list = append(list, at)
		}
		if !there || sockets > 1 || linkCount(info) > 1 {
			list = append(list, near.candidates(at)...)
		}
	}
	slices.Sort(list)
	return slices.DeleteFunc(slices.Compact(list), func(at string) bool { return l.own[at] })
}

// linkCount returns the number of a file's hard links.
func linkCount(info fs.FileInfo) uint64 {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(st.Nlink)
	}
	return 1
}

// maxNearby limits the folder entries searched for renamed sockets.
const maxNearby = 5000

// socketSearch finds sockets in folders, up to a limit of entries.
type socketSearch struct{ remaining int }

// candidates returns the sockets that may now be the one bound to a name: those in its folder, or, if the folder
// is gone, those at the same depth below its nearest existing parent.
func (s *socketSearch) candidates(at string) (list []string) {
	dir, deep := filepath.Dir(at), 0
	for !exists(dir) {
		dir, deep = filepath.Dir(dir), deep+1
	}
	if isWithin(dir, "/run") || isWithin(dir, "/var/run") || dir == "/" { // entirely hidden, or too far from the name
		return nil
	}
	folders := []string{dir}
	for ; deep >= 0; deep-- {
		var below []string
		for _, folder := range folders {
			sockets, dirs := s.readDir(folder)
			list, below = append(list, sockets...), append(below, dirs...)
		}
		folders = below
	}
	return list
}

// readDir returns the sockets and the folders in a folder.
func (s *socketSearch) readDir(folder string) (sockets, dirs []string) {
	d, err := os.Open(folder)
	if err != nil || s.remaining == 0 {
		return nil, nil
	}
	defer d.Close()
	entries, _ := d.ReadDir(s.remaining) // the entries before an error count
	s.remaining -= len(entries)
	for _, e := range entries {
		switch name := filepath.Join(folder, e.Name()); {
		case e.Type()&fs.ModeSocket != 0:
			sockets = append(sockets, name)
		case e.IsDir():
			dirs = append(dirs, name)
		}
	}
	return sockets, dirs
}

// workDirs returns the working directories of all processes it may inspect.
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

// confinedSockets returns the socket inodes of confined descendants.
func confinedSockets() map[string]bool {
	found := make(map[string]bool)
	for _, p := range descendants(ownNumber()) {
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
