package risk

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// A danger is a command that needs approval wherever it runs. Its judge may find it worse.
type danger struct {
	does  string
	judge func(w *walker, args []arg) Level
}

var dangerous = sync.OnceValue(func() map[string]danger {
	return map[string]danger{
		"rm":       {"removes files", recursiveOnRoot},
		"unlink":   {"removes a file", nil},
		"shred":    {"destroys files", onDisk},
		"srm":      {"destroys files", recursiveOnRoot},
		"wipe":     {"destroys files", onDisk},
		"truncate": {"truncates files", onDisk},
		"mv":       {"moves or overwrites files", onDisk},
		"chmod":    {"changes permissions", onRoot},
		"chown":    {"changes owners", onRoot},
		"chgrp":    {"changes groups", onRoot},
		"chattr":   {"changes attributes of files", recursiveOnRoot},
		"setfacl":  {"changes permissions", recursiveOnRoot},
		"dd":       {"copies raw data", ontoDisk},

		"fdisk": {"changes disks", unlessListing}, "sfdisk": {"changes disks", unlessListing}, "cfdisk": {"changes disks", always(Block)},
		"gdisk": {"changes disks", unlessListing}, "sgdisk": {"changes disks", unlessListing}, "parted": {"changes disks", unlessListing},
		"wipefs": {"erases disks", always(Block)}, "blkdiscard": {"erases disks", always(Block)},
		"mkswap": {"formats a disk", always(Block)}, "mke2fs": {"formats a disk", always(Block)},
		"mkdosfs": {"formats a disk", always(Block)}, "mkntfs": {"formats a disk", always(Block)}, "newfs": {"formats a disk", always(Block)},
		"cryptsetup": {"changes disks", formats}, "diskutil": {"changes disks", formats}, "nvme": {"changes disks", formats},
		"hdparm": {"changes disks", nil}, "zpool": {"changes disks", formats}, "lvremove": {"removes a disk", always(Block)},
		"vgremove": {"removes a disk", always(Block)}, "pvremove": {"removes a disk", always(Block)},

		"shutdown": {"stops the machine", func(_ *walker, args []arg) Level {
			if len(args) == 2 && args[1].is("-c") { // cancels a shutdown
				return Approve
			}
			return Block
		}},
		"reboot": {"stops the machine", always(Block)},
		"halt":   {"stops the machine", always(Block)}, "poweroff": {"stops the machine", always(Block)},
		"kexec": {"stops the machine", always(Block)},
		"init":  {"changes the state of the machine", runLevel}, "telinit": {"changes the state of the machine", runLevel},

		"crontab": {"installs commands that run later", unlessListing},
		"userdel": {"removes a user", nil}, "useradd": {"adds a user", nil}, "usermod": {"changes a user", nil}, "passwd": {"changes a password", nil},
		"visudo": {"changes privileges", nil}, "mount": {"changes the file system", nil}, "umount": {"changes the file system", nil},
		"killall": {"kills processes", unlessListing}, "pkill": {"kills processes", nil}, "killall5": {"kills processes", nil}, "skill": {"kills processes", nil},
		"iptables": {"changes the network", unlessShowing}, "ip6tables": {"changes the network", unlessShowing}, "nft": {"changes the network", unlessShowing},
		"ebtables": {"changes the network", unlessShowing}, "arptables": {"changes the network", unlessShowing}, "ipset": {"changes the network", unlessShowing},
		"iptables-restore": {"changes the network", nil}, "ip6tables-restore": {"changes the network", nil},
		"ufw": {"changes the network", unlessShowing}, "firewall-cmd": {"changes the network", unlessShowing},
		"coder":  {"could grant itself any permission", nil},
		"insmod": {"loads code into the system", nil}, "modprobe": {"loads code into the system", nil},
	}
})

// named reports whether a command is dangerous by its name alone.
func named(name string) bool {
	name = base(name)
	_, ok := dangerous()[name]
	return ok || name == "tee" || strings.HasPrefix(name, "mkfs") || partly()[name] != nil
}

// partly are the commands with only some dangerous uses.
var partly = sync.OnceValue(func() map[string]func(*walker, []arg) {
	return map[string]func(*walker, []arg){
		"systemctl": (*walker).systemctl, "loginctl": (*walker).systemctl,
		"cp": (*walker).copies, "install": (*walker).copies, "ln": (*walker).copies, "rsync": (*walker).copies,
		"sort": (*walker).sortOutput, "make": (*walker).make, "gmake": (*walker).make,
		"kill":     asksIf("kills every process", func(args []arg) bool { return len(args) > 2 && args[len(args)-1].is("-1", "1") }),
		"ifconfig": asksIf("changes the network", tells(1)), "route": asksIf("changes the network", tells(0)),
		"dmesg": asksIf("deletes system logs", clearsLog), "journalctl": asksIf("deletes system logs", cutsJournal),
		"ss":    asksIf("closes connections of other programs", endsConnections),
		"fuser": asksIf("kills processes", func(args []arg) bool { return letter(args[1:], "k", "--kill") }), "sysctl": asksIf("changes what the system runs", setsKernel),
	}
})

func (w *walker) dangers(name string, args []arg) {
	if judge := partly()[name]; judge != nil {
		judge(w, args)
		return
	}
	d, ok := dangerous()[name]
	if strings.HasPrefix(name, "mkfs") && (len(name) == 4 || name[4] == '.' || name[4] == '_') {
		d, ok = danger{"formats a disk", always(Block)}, true
	}
	if !ok {
		return
	}
	level := Approve
	if d.judge != nil {
		level = d.judge(w, args)
	}
	if level == Block && strings.Contains(args[0].text, "/") && !systemPath(args[0].text) {
		level = Approve // a project file with the same name
	}
	if level > None {
		w.find(level, "matches dangerous command policy ("+name+" "+d.does+")", joined(args))
	}
}

func systemPath(name string) bool {
	dir := name[:strings.LastIndexByte(name, '/')+1]
	return slices.Contains([]string{"/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/"}, dir)
}

func always(l Level) func(*walker, []arg) Level {
	return func(*walker, []arg) Level { return l }
}

// recursiveOnRoot blocks commands on the whole file system.
func recursiveOnRoot(w *walker, args []arg) Level {
	recursive, root := false, false
	options := true
	for _, a := range args[1:] {
		switch {
		case options && a.is("--"):
			options = false
		case options && a.option():
			long := strings.HasPrefix(a.text, "--")
			recursive = recursive || long && strings.HasPrefix(a.text, "--r") && !strings.HasPrefix(a.text, "--ref") ||
				!long && strings.ContainsAny(a.text, "rR")
		default:
			root = root || w.isRoot(a)
		}
	}
	if recursive && root {
		return Block
	}
	return Approve
}

// onRoot also blocks changes of the root directory itself.
func onRoot(w *walker, args []arg) Level {
	for _, a := range args[1:] {
		if a.exact() && !a.option() && slices.Contains(w.places(a), "/") {
			return Block
		}
	}
	return recursiveOnRoot(w, args)
}

func onDisk(w *walker, args []arg) Level {
	if slices.ContainsFunc(args[1:], w.isDisk) {
		return Block
	}
	return Approve
}

// ontoDisk judges where dd writes.
func ontoDisk(w *walker, args []arg) Level {
	for _, a := range args[1:] {
		if to, ok := strings.CutPrefix(a.text, "of="); ok && w.isDisk(arg{text: to, known: a.known}) {
			return Block
		}
	}
	return Approve
}

func unlessListing(w *walker, args []arg) Level {
	switch {
	case len(args) == 2 && args[1].is("-l", "-V", "-h", "--list", "--list-types", "list"), len(args) > 2 && args[1].is("-l", "--list", "-p", "--print"):
		return None
	case base(args[0].text) == "crontab" || base(args[0].text) == "killall":
		return Approve
	}
	return Block
}

// formats blocks the erasing uses of a disk tool.
func formats(_ *walker, args []arg) Level {
	for _, a := range args[1:] {
		t := strings.ToLower(a.text)
		if strings.Contains(t, "format") || strings.HasPrefix(t, "erase") || t == "destroy" || t == "partitiondisk" || t == "sanitize" {
			return Block
		}
	}
	if len(args) > 1 && args[1].is("list", "info", "status", "luksDump", "smart-log", "id-ctrl", "get", "iostat") {
		return None
	}
	return Approve
}

func runLevel(_ *walker, args []arg) Level {
	if len(args) > 1 && args[1].is("0", "1", "6", "s", "S") {
		return Block
	}
	return Approve
}

var stopping = words("poweroff reboot halt kexec soft-reboot suspend hibernate hybrid-sleep suspend-then-hibernate emergency rescue exit")

var planting = words("enable reenable unmask link edit preset preset-all add-wants add-requires revert " +
	"set-property set-environment import-environment enable-linger daemon-reexec")

func (w *walker) systemctl(args []arg) {
	for _, a := range args[1:] {
		name := strings.TrimSuffix(a.text, ".target")
		if a.exact() && stopping.has(name) {
			w.find(Block, "matches dangerous command policy ("+base(args[0].text)+" stops the machine)", joined(args))
		}
	}
	if slices.ContainsFunc(args[1:], func(a arg) bool { return planting.has(a.text) }) {
		w.find(Approve, "installs commands that run later", joined(args))
	}
	if anyIs(args, "stop", "disable", "mask", "kill", "kill-user", "terminate-user", "isolate", "set-default") {
		w.find(Approve, "changes what the system runs", joined(args))
	}
}

// copies judges the target of a copy: copying over a project file is everyday work, unless the file
// steers other programs. In a target folder, a file keeps its name.
func (w *walker) copies(args []arg) {
	operands := operandsOnly(args[1:])
	to, from := arg{}, operands
	if n := len(operands); n > 0 {
		to, from = operands[n-1], operands[:n-1]
	}
	for i, a := range args {
		if folder, ok := strings.CutPrefix(a.text, "--target-directory="); ok {
			to, from = arg{text: folder, known: a.known}, operands
		} else if i > 0 && args[i-1].is("-t", "--target-directory") {
			to, from = a, operands
		}
	}
	if to.text == "" {
		return
	}
	w.writes(to, false)
	for _, a := range from {
		if name := path.Base(a.text); a.exact() && to.exact() && name != "." && name != ".." {
			w.lands(arg{text: path.Join(to.text, name), home: to.home})
		}
	}
}

func (w *walker) sortOutput(args []arg) {
	for i, a := range args[1:] {
		if to, ok := strings.CutPrefix(a.text, "--output="); ok {
			w.writes(arg{text: to, known: a.known}, false)
		} else if a.is("-o", "--output") && i+2 < len(args) {
			w.writes(args[i+2], false)
		}
	}
}
