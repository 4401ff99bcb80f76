package risk

import (
	"path"
	"slices"
	"strings"
)

// Protected says what a path belongs to that no write should reach unasked:
// files that decide what runs later, or what is recorded. It is empty for all
// other paths.
func Protected(p string) string {
	p = strings.ToLower(path.Clean(strings.ReplaceAll(p, `\`, "/")))
	for part := range strings.SplitSeq(p, "/") {
		switch part {
		case ".git":
			return "the repository's own files"
		case ".coder":
			return "the program's own files"
		}
	}
	switch name := path.Base(p); {
	case name == "agents.md":
		return "the instructions given to the model"
	case slices.Contains(profiles, name):
		return "a file the shell runs by itself"
	case strings.HasPrefix(p, "/etc/profile"), strings.HasPrefix(p, "/etc/cron"), strings.HasPrefix(p, "/var/spool/cron"):
		return "a file the system runs by itself"
	case strings.HasSuffix(p, "/.ssh/authorized_keys"), strings.HasSuffix(p, "/.ssh/config"), strings.HasSuffix(p, "/.ssh/rc"):
		return "the keys and settings of ssh"
	case strings.HasSuffix(p, "/.config/fish/config.fish"), strings.HasPrefix(p, "/etc/sudoers"):
		return "a file that decides what may run"
	}
	return ""
}

var profiles = []string{
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile", ".zshrc", ".zshenv", ".zprofile",
	".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc", ".tcshrc", ".login", ".inputrc", ".xprofile", ".xinitrc", ".gitconfig",
}

var disks = []string{
	"sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "dm-", "md", "loop", "mapper/", "sr", "nbd", "zram", "ram", "pmem",
	"mem", "kmem", "port",
}

// isDisk reports whether a path names a disk, or the machine's memory.
func isDisk(p string) bool {
	name, ok := strings.CutPrefix(p, "/dev/")
	if !ok {
		return false
	}
	for _, d := range disks {
		if strings.HasPrefix(name, d) {
			return true
		}
	}
	return false
}

// isRoot reports whether a word may name the root directory, or all that is
// in it.
func (w *walker) isRoot(a arg) bool {
	if a.known == dynamic {
		return false
	}
	for _, p := range w.places(a) {
		for {
			last := path.Base(p)
			if p == "/" || strings.Trim(last, "*.?{},") != "" || !strings.Contains(last, "*") {
				break
			}
			p = path.Dir(p)
		}
		if p == "/" {
			return true
		}
	}
	return false
}

func (w *walker) isDisk(a arg) bool {
	if a.known == dynamic {
		return false
	}
	return slices.ContainsFunc(w.places(a), isDisk)
}
