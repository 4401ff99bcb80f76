package program

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Git itself reports the configuration, so that every form counts as git reads it: includes, conditions,
// work trees, odd spellings. coder then overrides the repository's values from outside, where no file of
// the repository has influence: with the user's own value, or with none. This covers filters, text
// conversion, diff and merge drivers, hooks, monitors, pagers, programs that check signatures, and
// programs that fetch missing objects.
//
// A [Git] is stricter: it reads no configuration again, and gets only those of the repository's values
// that are known to be harmless.

// A Setting is one value of git's configuration. coder's settings take precedence over all files.
type Setting struct{ Key, Value string }

// Always are the settings of every run. They disable keys that run programs, or that write where git
// should only read.
var Always = []Setting{
	{"core.fsmonitor", "false"},
	{"core.hookspath", "/dev/null"},
	{"core.pager", "cat"},
	{"core.askpass", ""},
	{"core.alternaterefscommand", ""},
	{"credential.helper", ""},
	{"diff.autorefreshindex", "false"},
	{"diff.external", ""},
	{"diff.ignoresubmodules", "dirty"}, // more would run git within the submodules
	{"diff.submodule", "short"},
	{"gc.auto", "0"},
	{"log.diffmerges", "separate"}, // merging again would run merge drivers
	{"log.showsignature", "false"},
	{"maintenance.auto", "false"},
	{"rerere.enabled", "false"}, // it would run merge drivers
	{"safe.barerepository", "explicit"},
	{"status.submodulesummary", "false"},
	{"submodule.recurse", "false"},
}

// variables are added to the environment of every run. They allow no protocol, so that git does not
// fetch a missing object through a program of the repository's choice.
var variables = []string{
	"GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_PAGER=cat", "GIT_EDITOR=:",
}

// harmless are the git variables that the user may set. All others choose another repository, another
// program or a file to write.
var harmless = []string{
	"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE",
	"GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE",
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES",
}

// Environment returns env for a run of git with settings.
func Environment(env []string, settings []Setting) (list []string) {
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(strings.ToUpper(name), "GIT_") || slices.Contains(harmless, name) {
			list = append(list, v)
		}
	}
	list = append(append(list, variables...), "GIT_CONFIG_COUNT="+strconv.Itoa(len(settings)))
	for i, s := range settings { // unlike an argument key=value this is safe for a key that itself holds "="
		list = append(list, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s.Key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s.Value))
	}
	return list
}

// ErrTooOld reports a git version that ignores settings from the environment.
var ErrTooOld = errors.New("git is too old; 2.32 or later is needed")

// disarm returns settings that, for git within the sandbox, disable values not configured by the user.
// It disables all hooks, regardless of who configured them.
func (d Door) disarm(list []byte) (settings []Setting, entries []entry, err error) {
	entries = parse(list)
	if !heeds(entries, Always) {
		return nil, nil, ErrTooOld
	}
	yours := d.yours()
	own := make(map[string]string)
	for _, e := range entries {
		if yours(e) {
			own[e.Key] = e.Value
		}
	}
	settings = slices.Clone(Always)
	var filters []string
	for _, e := range entries {
		section, name, last := e.parts()
		switch {
		case section == "hook" && last == "command":
			settings = append(settings, Setting{"hook." + name + ".enabled", "false"})
		case yours(e) || e.scope == "command" || section != "alias" && !slices.Contains(programs, last): // an alias may name a command that git later removes
		default:
			settings = append(settings, Setting{e.Key, own[e.Key]})
			if section == "filter" && own[e.Key] == "" && !slices.Contains(filters, name) {
				filters = append(filters, name)
			}
		}
	}
	return append(settings, require(filters, false)...), entries, nil
}

// heeds reports whether git accepted settings from outside.
func heeds(entries []entry, given []Setting) bool {
	return !slices.ContainsFunc(given, func(s Setting) bool {
		return !slices.ContainsFunc(entries, func(e entry) bool { return e.Setting == s && e.scope == "command" })
	})
}

// judgement sorts git's configuration by what may take effect.
type judgement struct {
	harmless []Setting // the user's, and harmless ones of others
	mine     []Setting // the user's filters, which run in the folder with the files
	format   []Setting // the repository's format, which git reads only from a file
	filters  []string  // the repository's filters, which do not run
	hooks    string    // the configured hooks folder, if any
}

// largeFiles is the standard filter of git-lfs: it runs only git-lfs, which takes no program from the
// folder.
var largeFiles = []Setting{
	{"filter.lfs.clean", "git-lfs clean -- %f"}, {"filter.lfs.smudge", "git-lfs smudge -- %f"},
	{"filter.lfs.process", "git-lfs filter-process"}, {"filter.lfs.required", "true"},
}

// judge sorts the settings that git found. Settings of others than the user pass only if their key is
// known to be harmless.
func (d Door) judge(list []byte, given []Setting) (j judgement, err error) {
	entries := parse(list)
	if !heeds(entries, given) {
		return j, ErrTooOld
	}
	yours := d.yours()
	own := make(map[string]bool) // filters
	var off []Setting
	for _, e := range entries {
		section, name, last := e.parts()
		local := e.scope == "local" || e.scope == "worktree"
		switch {
		case e.scope == "command" || strings.HasPrefix(section, "include"): // included files are already in the list
			continue
		case e.Key == "core.hookspath":
			j.hooks = e.Value
		case local && (section == "extensions" && last != "worktreeconfig" || e.Key == "core.repositoryformatversion"):
			j.format = append(j.format, e.Setting)
		case yours(e) && section == "filter":
			own[name] = own[name] || e.Value != ""
			if slices.Contains(largeFiles, e.Setting) {
				j.harmless = append(j.harmless, e.Setting)
			} else {
				j.mine = append(j.mine, e.Setting)
			}
		case yours(e) && !slices.Contains(outward, section):
			j.harmless = append(j.harmless, e.Setting)
			if section == "hook" && last == "command" {
				off = append(off, Setting{"hook." + name + ".enabled", "false"})
			}
		case isHarmless(section, name, last):
			j.harmless = append(j.harmless, e.Setting)
		case section == "filter" && slices.Contains([]string{"clean", "smudge", "process"}, last) && !own[name] && !slices.Contains(j.filters, name):
			j.filters = append(j.filters, name)
		}
	}
	j.harmless = append(j.harmless, off...)
	return j, nil
}

// own returns the user's own settings.
func (d Door) own(entries []entry) (settings []Setting) {
	yours := d.yours()
	for _, e := range entries {
		if section, _, _ := e.parts(); yours(e) && !strings.HasPrefix(section, "include") {
			settings = append(settings, e.Setting)
		}
	}
	return settings
}

// yours returns a function that reports whether a setting is the user's: it is in the user's or the
// system's configuration, and no link on the path to that file is where commands or file tools may
// write.
func (d Door) yours() func(entry) bool {
	_, places := d.finder.places()
	files := make(map[string]bool)
	return func(e entry) bool {
		if e.scope != "system" && e.scope != "global" {
			return false
		}
		safe, known := files[e.origin]
		if !known {
			name, isFile := strings.CutPrefix(e.origin, "file:")
			safe = isFile && filepath.IsAbs(name) && through(name, places) == ""
			files[e.origin] = safe
		}
		return safe
	}
}

// require makes disabled filters fail instead of letting content pass unfiltered, or the opposite.
func require(filters []string, fail bool) (settings []Setting) {
	for _, name := range filters {
		settings = append(settings, Setting{"filter." + name + ".required", strconv.FormatBool(fail)})
	}
	return settings
}

// entry is a setting with its source.
type entry struct {
	Setting
	scope, origin string
}

// parts splits the key into section.name.last; name may contain dots or be empty.
func (e entry) parts() (section, name, last string) {
	section, name, _ = strings.Cut(e.Key, ".")
	last = name[strings.LastIndexByte(name, '.')+1:]
	return section, strings.TrimSuffix(name[:len(name)-len(last)], "."), last
}

// parse parses git's list of settings, which repeats scope, origin and key-newline-value. A key without
// a value is true.
func parse(list []byte) (entries []entry) {
	for three := range slices.Chunk(strings.Split(string(bytes.TrimSuffix(list, []byte{0})), "\x00"), 3) {
		if len(three) < 3 {
			break
		}
		key, value, has := strings.Cut(three[2], "\n")
		if !has {
			value = "true"
		}
		entries = append(entries, entry{Setting{key, value}, three[0], three[1]})
	}
	return entries
}

// programs are last parts of keys that name a program to run.
var programs = []string{
	"clean", "smudge", "process", // filters
	"command", "cmd", "textconv", "driver", // diffs, merges, trailers
	"program", "defaultkeycommand", "helper", // signatures, credentials
	"sshcommand", "gitproxy", "uploadpack", "receivepack", "vcs", "askpass", // fetching
}
