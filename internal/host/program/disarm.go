package program

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Git itself is asked what is configured, so that every form a configuration can
// have counts as git reads it: includes, conditions, work trees, odd spellings.
// What a repository sets is then set back from outside, where no file of the
// repository has a say: to what your own configuration says, or to nothing. That
// holds for filters, text conversion, diff and merge drivers, hooks, monitors,
// pagers, programs that check signatures, programs that fetch what is missing.

// A Setting is one value of git's configuration. Those we give it stand above
// all files.
type Setting struct{ Key, Value string }

// Always are the settings of every run. What is named here runs programs, or
// writes where git is only to read.
var Always = []Setting{
	{"core.fsmonitor", "false"},
	{"core.hookspath", "/dev/null"},
	{"core.pager", "cat"},
	{"core.askpass", ""},
	{"core.alternaterefscommand", ""},
	{"credential.helper", ""},
	{"diff.autorefreshindex", "false"},
	{"diff.external", ""},
	{"diff.ignoresubmodules", "dirty"}, // to see more, git would run within them
	{"diff.submodule", "short"},
	{"gc.auto", "0"},
	{"log.diffmerges", "separate"}, // to merge again would call merge drivers
	{"log.showsignature", "false"},
	{"maintenance.auto", "false"},
	{"rerere.enabled", "false"}, // it would call merge drivers
	{"safe.barerepository", "explicit"},
	{"status.submodulesummary", "false"},
	{"submodule.recurse", "false"},
}

// variables are the environment of every run. No protocol is allowed, so that
// an object which is missing is not fetched through a program that the
// repository chooses.
var variables = []string{
	"GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_PAGER=cat", "GIT_EDITOR=:",
}

// harmless are the variables of git that the user may set. Every other one
// leads to another repository, another program or a file to write.
var harmless = []string{
	"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE",
	"GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE",
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES",
}

// Environment is env for a run of git under settings.
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

// ErrTooOld is the error of a git that does not heed settings from outside.
var ErrTooOld = errors.New("git is too old; 2.31 or later is needed")

// disarm adds to the settings under which git listed its configuration those
// that switch off what the repository configures. It also names the filters of
// the repository that have no program any more. A hook is switched off whoever
// configured it.
func disarm(list []byte, given []Setting) (settings []Setting, filters []string, err error) {
	entries := parse(list)
	for _, s := range given {
		if !slices.Contains(entries, entry{s, "command"}) {
			return nil, nil, ErrTooOld
		}
	}
	own := make(map[string]string)
	for _, e := range entries {
		if e.own() {
			own[e.Key] = e.Value
		}
	}
	settings = slices.Clone(given)
	for _, e := range entries {
		section, name, _ := strings.Cut(e.Key, ".") // of section.name.last the name may hold dots, or be absent
		last := name[strings.LastIndexByte(name, '.')+1:]
		name = strings.TrimSuffix(name[:len(name)-len(last)], ".")
		switch {
		case section == "hook" && last == "command":
			settings = append(settings, Setting{"hook." + name + ".enabled", "false"})
		case e.own() || e.scope == "command" || section != "alias" && !slices.Contains(programs, last): // an alias may stand for a command that git is about to drop
		default:
			settings = append(settings, Setting{e.Key, own[e.Key]})
			if section == "filter" && own[e.Key] == "" && !slices.Contains(filters, name) {
				filters = append(filters, name)
			}
		}
	}
	return append(settings, require(filters, false)...), filters, nil
}

// require has the filters that were switched off fail, rather than let content
// pass unfiltered; or else the other way round.
func require(filters []string, fail bool) (settings []Setting) {
	for _, name := range filters {
		settings = append(settings, Setting{"filter." + name + ".required", strconv.FormatBool(fail)})
	}
	return settings
}

// entry is a setting and where it was found.
type entry struct {
	Setting
	scope string
}

// own reports whether the setting is the user's, not the repository's.
func (e entry) own() bool { return e.scope == "system" || e.scope == "global" }

// parse reads git's list of settings: scope and key-newline-value by turns.
func parse(list []byte) (entries []entry) {
	for pair := range slices.Chunk(strings.Split(string(bytes.TrimSuffix(list, []byte{0})), "\x00"), 2) {
		if len(pair) < 2 {
			break
		}
		key, value, _ := strings.Cut(pair[1], "\n")
		entries = append(entries, entry{Setting{key, value}, pair[0]})
	}
	return entries
}

// programs are the last parts of keys that name a program to run.
var programs = []string{
	"clean", "smudge", "process", // filters
	"command", "cmd", "textconv", "driver", // diffs, merges, trailers
	"program", "defaultkeycommand", "helper", // signatures, credentials
	"sshcommand", "gitproxy", "uploadpack", "receivepack", "vcs", "askpass", // what fetches
}
