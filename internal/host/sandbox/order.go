package sandbox

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// stage is the part of the confinement left to the helper.
type stage string

const (
	stageNamespaces stage = "namespaces" // in new namespaces: set up the file system
	stageBwrap      stage = "bwrap"      // bwrap did that: add what it lacks
	stageLandlock   stage = "landlock"   // only Landlock is available
	stageOpen       stage = "open"       // not confined: only end its processes
)

// order is the helper's command line: resolved limits and the command.
type order struct {
	stage stage
	places
	outer   string // the mount namespace that must not be changed
	starter string // the requesting process, see processNumber
	tell    bool   // report how the command ended
	probe   bool   // exit successfully instead of running a command
	journal string // the command's number in the journal, or empty
	// confined reports, at stageOpen, that the command confines itself.
	confined bool
	groups   []string // folders of the command's control group
	argv     []string
}

// lists returns the path lists of an order with their argument names.
func (o *order) lists() []pathList {
	return []pathList{
		{"--write", &o.write}, {"--protect", &o.protect}, {"--hide", &o.hide}, {"--empty", &o.empty}, {"--show", &o.show},
		{"--empty-in", &o.emptyIn}, {"--show-in", &o.showIn}, {"--pin", &o.pin}, {"--group", &o.groups},
	}
}

type pathList struct {
	name  string
	paths *[]string
}

// args encodes an order as arguments that precede the command.
func (o order) args() []string {
	args := []string{"--stage=" + string(o.stage)}
	for _, l := range o.lists() {
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
	if o.outer != "" {
		args = append(args, "--outer="+o.outer)
	}
	if o.starter != "" {
		args = append(args, "--starter="+o.starter)
	}
	if o.tell {
		args = append(args, "--tell")
	}
	if o.journal != "" {
		args = append(args, "--journal="+o.journal)
	}
	if o.confined {
		args = append(args, "--confined")
	}
	if o.probe {
		args = append(args, "--probe")
	}
	return append(append(args, "--"), o.argv...)
}

// parse parses an order. Anything unknown or missing is an error: an unknown limit must not be ignored.
func parse(args []string) (o order, err error) {
	lists := o.lists()
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
				return order{}, fmt.Errorf("invalid bounds %q", value)
			}
		case "--outlet":
			o.outlet = true
		case "--outer":
			o.outer = value
		case "--starter":
			o.starter = value
		case "--tell":
			o.tell = true
		case "--journal":
			o.journal = value
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
				return order{}, fmt.Errorf("unknown argument %q", arg)
			}
			*lists[at].paths = append(*lists[at].paths, value)
		}
	}
	return order{}, fmt.Errorf("no command given")
}

func (o order) check() error {
	if !slices.Contains([]stage{stageNamespaces, stageBwrap, stageLandlock, stageOpen}, o.stage) {
		return fmt.Errorf("unknown stage %q", o.stage)
	}
	for _, path := range slices.Concat(o.write, o.protect, o.hide, o.empty, o.show, o.emptyIn, o.showIn, o.pin, o.groups) {
		if !filepath.IsAbs(path) || path == "/" || path != filepath.Clean(path) {
			return fmt.Errorf("invalid path %q", path)
		}
	}
	if len(o.argv) == 0 && !o.probe {
		return fmt.Errorf("no command given")
	}
	return nil
}

// pins returns the directories that must not be moved, outermost first: the requested ones, and those
// between a writable place and a protected path in it, since otherwise another directory could replace
// them.
func (p places) pins() (dirs []string) {
	pinned := slices.Clone(p.pin)
	for _, path := range p.protect {
		for dir := filepath.Dir(path); dir != "/" && !slices.Contains(p.write, dir); dir = filepath.Dir(dir) {
			pinned = append(pinned, dir)
		}
	}
	slices.Sort(pinned)
	return slices.Compact(pinned)
}
