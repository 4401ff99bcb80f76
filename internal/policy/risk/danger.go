package risk

import (
	"path"
	"slices"
	"strings"
	"sync"
)

// A danger is a command that needs approval wherever it runs. Its judge may find it worse.
type danger struct {
	description string
	judge       func(w *walker, args []arg) Level
}

var dangerousCommands = sync.OnceValue(func() map[string]danger {
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

		"fdisk": {"changes disks", unlessListing}, "sfdisk": {"changes disks", unlessListing},
		"cfdisk": {"changes disks", alwaysLevel(Block)},
		"gdisk":  {"changes disks", unlessListing}, "sgdisk": {"changes disks", unlessListing},
		"parted": {"changes disks", unlessListing},
		"wipefs": {"erases disks", alwaysLevel(Block)}, "blkdiscard": {"erases disks", alwaysLevel(Block)},
		"mkswap": {"formats a disk", alwaysLevel(Block)}, "mke2fs": {"formats a disk", alwaysLevel(Block)},
		"mkdosfs": {"formats a disk", alwaysLevel(Block)}, "mkntfs": {"formats a disk", alwaysLevel(Block)},
		"newfs":      {"formats a disk", alwaysLevel(Block)},
		"cryptsetup": {"changes disks", diskErase}, "diskutil": {"changes disks", diskErase},
		"nvme":   {"changes disks", diskErase},
		"hdparm": {"changes disks", nil}, "zpool": {"changes disks", diskErase},
		"lvremove": {"removes a disk", alwaysLevel(Block)},
		"vgremove": {"removes a disk", alwaysLevel(Block)}, "pvremove": {"removes a disk", alwaysLevel(Block)},

		"shutdown": {"stops the machine", func(_ *walker, args []arg) Level {
			if len(args) == 2 && args[1].isOneOf("-c") { // cancels a shutdown
				return Approve
			}
			return Block
		}},
		"reboot": {"stops the machine", alwaysLevel(Block)},
		"halt":   {"stops the machine", alwaysLevel(Block)}, "poweroff": {"stops the machine", alwaysLevel(Block)},
		"kexec": {"stops the machine", alwaysLevel(Block)},
		"init":  {"changes the state of the machine", runLevel}, "telinit": {"changes the state of the machine", runLevel},

		"crontab": {"installs commands that run later", unlessListing},
		"userdel": {"removes a user", nil}, "useradd": {"adds a user", nil}, "usermod": {"changes a user", nil},
		"passwd": {"changes a password", nil},
		"visudo": {"changes privileges", nil}, "mount": {"changes the file system", nil},
		"umount":  {"changes the file system", nil},
		"killall": {"kills processes", unlessListing}, "pkill": {"kills processes", nil},
		"killall5": {"kills processes", nil}, "skill": {"kills processes", nil},
		"iptables": {"changes the network", unlessShowing}, "ip6tables": {"changes the network", unlessShowing},
		"nft":      {"changes the network", unlessShowing},
		"ebtables": {"changes the network", unlessShowing}, "arptables": {"changes the network", unlessShowing},
		"ipset":            {"changes the network", unlessShowing},
		"iptables-restore": {"changes the network", nil}, "ip6tables-restore": {"changes the network", nil},
		"ufw": {"changes the network", unlessShowing}, "firewall-cmd": {"changes the network", unlessShowing},
		"coder":  {"could grant itself any permission", nil},
		"insmod": {"loads code into the system", nil}, "modprobe": {"loads code into the system", nil},
	}
})

// isDangerousName reports whether a command is dangerous by its name alone.
func isDangerousName(name string) bool {
	name = programName(name)
	_, ok := dangerousCommands()[name]
	return ok || name == "tee" || strings.HasPrefix(name, "mkfs") || partlyDangerous()[name] != nil
}

// partlyDangerous are the commands with only some dangerous uses.
var partlyDangerous = sync.OnceValue(func() map[string]func(*walker, []arg) {
	return map[string]func(*walker, []arg){
		"systemctl": (*walker).judgeSystemctl, "loginctl": (*walker).judgeSystemctl,
		"cp": (*walker).judgeCopy, "install": (*walker).judgeCopy, "ln": (*walker).judgeCopy, "rsync": (*walker).judgeCopy,
		"sort": (*walker).judgeSortOutput, "make": (*walker).judgeMakeArgs, "gmake": (*walker).judgeMakeArgs,
		"kill": approveIf("kills every process", func(args []arg) bool {
			return len(args) > 2 &&
				args[len(args)-1].isOneOf("-1", "1")
		}),
		"ifconfig": approveIf("changes the network", hasMoreOperands(1)),
		"route":    approveIf("changes the network", hasMoreOperands(0)),
		"dmesg":    approveIf("deletes system logs", clearsLog), "journalctl": approveIf("deletes system logs", cutsJournal),
		"ss":     approveIf("closes connections of other programs", endsConnections),
		"fuser":  approveIf("kills processes", func(args []arg) bool { return hasFlag(args[1:], "k", "--kill") }),
		"sysctl": approveIf("changes what the system runs", setsKernel),
	}
})

func (w *walker) judgeDangers(name string, args []arg) {
	if judge := partlyDangerous()[name]; judge != nil {
		judge(w, args)
		return
	}
	d, ok := dangerousCommands()[name]
	if strings.HasPrefix(name, "mkfs") && (len(name) == 4 || name[4] == '.' || name[4] == '_') {
		d, ok = danger{"formats a disk", alwaysLevel(Block)}, true
	}
	if !ok {
		return
	}
	level := Approve
	if d.judge != nil {
		level = d.judge(w, args)
	}
	if level == Block && strings.Contains(args[0].text, "/") && !isSystemPath(args[0].text) {
		level = Approve // a project file with the same name
	}
	if level > None {
		w.addFinding(level, "matches dangerous command policy ("+name+" "+d.description+")", joinWords(args))
	}
}

func isSystemPath(name string) bool {
	dir := name[:strings.LastIndexByte(name, '/')+1]
	return slices.Contains([]string{"/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/",
		"/usr/local/sbin/"}, dir)
}

func alwaysLevel(l Level) func(*walker, []arg) Level {
	return func(*walker, []arg) Level { return l }
}

// recursiveOnRoot blocks commands on the whole file system.
func recursiveOnRoot(w *walker, args []arg) Level {
	recursive, root := false, false
	options := true
	for _, a := range args[1:] {
		switch {
		case options && a.isOneOf("--"):
			options = false
		case options && a.isOption():
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
		if a.isExact() && !a.isOption() && slices.Contains(w.possiblePaths(a), "/") {
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
		if to, ok := strings.CutPrefix(a.text, "of="); ok && w.isDisk(arg{text: to, certainty: a.certainty}) {
			return Block
		}
	}
	return Approve
}

func unlessListing(w *walker, args []arg) Level {
	switch {
	case len(args) == 2 && args[1].isOneOf("-l", "-V", "-h", "--list", "--list-types", "list"),
		len(args) > 2 && args[1].isOneOf("-l", "--list", "-p", "--print"):
		return None
	case programName(args[0].text) == "crontab" || programName(args[0].text) == "killall":
		return Approve
	}
	return Block
}

// diskErase blocks the erasing uses of a disk tool.
func diskErase(_ *walker, args []arg) Level {
	for _, a := range args[1:] {
		t := strings.ToLower(a.text)
		if strings.Contains(t, "format") || strings.HasPrefix(t, "erase") || t == "destroy" || t == "partitiondisk" ||
			t == "sanitize" {
			return Block
		}
	}
	if len(args) > 1 && args[1].isOneOf("list", "info", "status", "luksDump", "smart-log", "id-ctrl", "get", "iostat") {
		return None
	}
	return Approve
}

func runLevel(_ *walker, args []arg) Level {
	if len(args) > 1 && args[1].isOneOf("0", "1", "6", "s", "S") {
		return Block
	}
	return Approve
}

var systemctlStops = wordList("poweroff reboot halt kexec soft-reboot suspend hibernate hybrid-sleep suspend-then-hibernate emergency rescue exit")

var systemctlInstalls = wordList("enable reenable unmask link edit preset preset-all add-wants add-requires revert " +
	"set-property set-environment import-environment enable-linger daemon-reexec")

func (w *walker) judgeSystemctl(args []arg) {
	for _, a := range args[1:] {
		name := strings.TrimSuffix(a.text, ".target")
		if a.isExact() && systemctlStops.has(name) {
			w.addFinding(Block, "matches dangerous command policy ("+programName(args[0].text)+" stops the machine)",
				joinWords(args))
		}
	}
	if slices.ContainsFunc(args[1:], func(a arg) bool { return systemctlInstalls.has(a.text) }) {
		w.addFinding(Approve, "installs commands that run later", joinWords(args))
	}
	if anyEquals(args, "stop", "disable", "mask", "kill", "kill-user", "terminate-user", "isolate", "set-default") {
		w.addFinding(Approve, "changes what the system runs", joinWords(args))
	}
}

// judgeCopy judges the target of a copy: copying over a project file is everyday work, unless the file
// steers other programs. In a target folder, a file keeps its name.
func (w *walker) judgeCopy(args []arg) {
	operands := dropOptions(args[1:])
	to, from := arg{}, operands
	if n := len(operands); n > 0 {
		to, from = operands[n-1], operands[:n-1]
	}
	for i, a := range args {
		if folder, ok := strings.CutPrefix(a.text, "--target-directory="); ok {
			to, from = arg{text: folder, certainty: a.certainty}, operands
		} else if i > 0 && args[i-1].isOneOf("-t", "--target-directory") {
			to, from = a, operands
		}
	}
	if to.text == "" {
		return
	}
	w.judgeWrite(to, false)
	for _, a := range from {
		if name := path.Base(a.text); a.isExact() && to.isExact() && name != "." && name != ".." {
			w.judgeDestination(arg{text: path.Join(to.text, name), hasTilde: to.hasTilde})
		}
	}
}

func (w *walker) judgeSortOutput(args []arg) {
	for i, a := range args[1:] {
		if to, ok := strings.CutPrefix(a.text, "--output="); ok {
			w.judgeWrite(arg{text: to, certainty: a.certainty}, false)
		} else if a.isOneOf("-o", "--output") && i+2 < len(args) {
			w.judgeWrite(args[i+2], false)
		}
	}
}
