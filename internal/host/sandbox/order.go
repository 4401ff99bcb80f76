package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/core/message"
)

// stage is the part of the confinement left to the helper.
type stage string

const (
	stageNamespaces stage = "namespaces" // in new namespaces: set up the file system
	stageBwrap      stage = "bwrap"      // bwrap did that: add what it lacks
	stageLandlock   stage = "landlock"   // only Landlock is available
	stageOpen       stage = "open"       // not confined: only end its processes
)

// helperSpec is the helper's command line: resolved limits and the command.
type helperSpec struct {
	stage stage
	resolvedLimits
	outerNamespace string // the mount namespace that must not be changed
	starter        string // the requesting process, see ownNumber
	reportEnd      bool   // report how the command ended
	probe          bool   // exit successfully instead of running a command
	journalRun     string // the command's number in the journal, or empty
	// confined reports, at stageOpen, that the command confines itself.
	confined bool
	groups   []string // folders of the command's control group
	argv     []string
}

// pathLists returns the path lists of an order with their argument names.
func (o *helperSpec) pathLists() []pathList {
	return []pathList{
		{"--write", &o.write}, {"--protect", &o.protect}, {"--hide", &o.hide}, {"--empty", &o.empty}, {"--show", &o.show},
		{"--empty-in", &o.nestedEmpty}, {"--show-in", &o.nestedShow}, {"--pin", &o.pin}, {"--group", &o.groups},
	}
}

type pathList struct {
	name  string
	paths *[]string
}

// args encodes an order as arguments that precede the command.
func (o helperSpec) args() []string {
	args := []string{"--stage=" + string(o.stage)}
	for _, l := range o.pathLists() {
		for _, path := range *l.paths {
			args = append(args, l.name+"="+path)
		}
	}
	if o.network {
		args = append(args, "--network")
	}
	if o.trace {
		args = append(args, "--trace")
	}
	if o.bounds != (Bounds{}) {
		args = append(args, fmt.Sprintf("--bounds=%d,%d", o.bounds.Memory, o.bounds.Processes))
	}
	if o.outlet {
		args = append(args, "--outlet")
	}
	if o.outerNamespace != "" {
		args = append(args, "--outer="+o.outerNamespace)
	}
	if o.starter != "" {
		args = append(args, "--starter="+o.starter)
	}
	if o.reportEnd {
		args = append(args, "--tell")
	}
	if o.journalRun != "" {
		args = append(args, "--journal="+o.journalRun)
	}
	if o.confined {
		args = append(args, "--confined")
	}
	if o.probe {
		args = append(args, "--probe")
	}
	return append(append(args, "--"), o.argv...)
}

// parseSpec parses an order. Anything unknown or missing is an error: an unknown limit must not be ignored.
func parseSpec(args []string) (o helperSpec, err error) {
	lists := o.pathLists()
	for i, arg := range args {
		name, value, _ := strings.Cut(arg, "=")
		switch name {
		case "--stage":
			o.stage = stage(value)
		case "--network":
			o.network = true
		case "--trace":
			o.trace = true
		case "--bounds":
			if _, err := fmt.Sscanf(value, "%d,%d", &o.bounds.Memory, &o.bounds.Processes); err != nil {
				return helperSpec{}, message.Errorf("invalid bounds %q", value)
			}
		case "--outlet":
			o.outlet = true
		case "--outer":
			o.outerNamespace = value
		case "--starter":
			o.starter = value
		case "--tell":
			o.reportEnd = true
		case "--journal":
			o.journalRun = value
		case "--confined":
			o.confined = true
		case "--probe":
			o.probe = true
		case "--":
			o.argv = args[i+1:]
			return o, o.check()
		default:
			at := slices.IndexFunc(lists, func(l pathList) bool { return l.name == name })
			if at < 0 {
				return helperSpec{}, message.Errorf("unknown argument %q", arg)
			}
			*lists[at].paths = append(*lists[at].paths, value)
		}
	}
	return helperSpec{}, message.Errorf("no command given")
}

func (o helperSpec) check() error {
	if !slices.Contains([]stage{stageNamespaces, stageBwrap, stageLandlock, stageOpen}, o.stage) {
		return message.Errorf("unknown stage %q", o.stage)
	}
	for _, path := range slices.Concat(o.write, o.protect, o.hide, o.empty, o.show, o.nestedEmpty, o.nestedShow, o.pin,
		o.groups) {
		if !filepath.IsAbs(path) || path == "/" || path != filepath.Clean(path) {
			return message.Errorf("invalid path %q", path)
		}
	}
	if len(o.argv) == 0 && !o.probe {
		return message.Errorf("no command given")
	}
	return nil
}

// pinnedDirs returns the directories that must not be moved, outermost first: the requested ones, and those
// between a writable place and a protected path in it, since otherwise another directory could replace
// them.
func (p resolvedLimits) pinnedDirs() (dirs []string) {
	pinned := slices.Clone(p.pin)
	for _, path := range p.protect {
		for dir := filepath.Dir(path); dir != "/" && !slices.Contains(p.write, dir); dir = filepath.Dir(dir) {
			pinned = append(pinned, dir)
		}
	}
	slices.Sort(pinned)
	return slices.Compact(pinned)
}
