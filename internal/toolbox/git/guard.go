package git

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A setting is one value of git's configuration. Those we give it stand above
// all files.
type setting struct{ key, value string }

// always holds for every run. What is named here runs programs, writes where a
// call only reads, or changes the form of the output.
var always = []setting{
	{"core.fsmonitor", "false"},
	{"core.hookspath", "/dev/null"},
	{"core.pager", "cat"},
	{"core.askpass", ""},
	{"core.alternaterefscommand", ""},
	{"core.quotepath", "false"},
	{"color.ui", "false"},
	{"color.status", "false"},
	{"commit.gpgsign", "false"},
	{"credential.helper", ""},
	{"diff.autorefreshindex", "false"},
	{"diff.external", ""},
	{"diff.ignoresubmodules", "dirty"},
	{"gc.auto", "0"},
	{"i18n.commitencoding", "UTF-8"},
	{"i18n.logoutputencoding", "UTF-8"},
	{"log.showsignature", "false"},
	{"maintenance.auto", "false"},
	{"rerere.enabled", "false"}, // it would call merge drivers
	{"safe.barerepository", "explicit"},
	{"status.relativepaths", "true"},
	{"submodule.recurse", "false"},
}

// variables are the environment of every run. No protocol is allowed, so that
// an object which is missing is not fetched through a program that the
// repository chooses.
var variables = []string{
	"GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0",
	"GIT_PAGER=cat", "GIT_EDITOR=:", "GIT_LITERAL_PATHSPECS=1", "LC_ALL=C",
}

// harmless are the variables of git that the user may set. Every other one
// leads to another repository, another program or a file to write.
var harmless = []string{
	"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE",
	"GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE",
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES",
}

func environment(env []string) (list []string) {
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(strings.ToUpper(name), "GIT_") || slices.Contains(harmless, name) {
			list = append(list, v)
		}
	}
	return append(list, variables...)
}

// asVariables hands settings to git. Unlike an argument key=value this is safe
// for a key that itself holds "=".
func asVariables(settings []setting) []string {
	list := []string{"GIT_CONFIG_COUNT=" + strconv.Itoa(len(settings))}
	for i, s := range settings {
		list = append(list, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s.key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s.value))
	}
	return list
}

// entry is a setting and where it was found.
type entry struct {
	setting
	scope string
}

// own reports whether the setting is the user's, not the repository's.
func (e entry) own() bool { return e.scope == "system" || e.scope == "global" }

// parseConfig reads git's list of settings: scope and key-newline-value by turns.
func parseConfig(list []byte) (entries []entry) {
	for pair := range slices.Chunk(fields(list), 2) {
		if len(pair) < 2 {
			break
		}
		key, value, _ := strings.Cut(pair[1], "\n")
		entries = append(entries, entry{setting{key, value}, pair[0]})
	}
	return entries
}

// programs are the last parts of keys that name a program to run.
var programs = []string{
	"clean", "smudge", "process", // filters
	"command", "cmd", "textconv", "driver", // diffs, merges, trailers
	"program", "defaultkeycommand", "helper", // signatures, credentials
}

// neutral are the settings that put back what the repository changed: programs
// to those of the user's own configuration, or to none. It also names the
// filters that have lost theirs. A hook is switched off whoever configured it.
func neutral(entries []entry) (settings []setting, filters []string) {
	own := make(map[string]string)
	for _, e := range entries {
		if e.own() {
			own[e.key] = e.value
		}
	}
	for _, e := range entries {
		section, name, last := parts(e.key)
		switch {
		case section == "hook" && last == "command":
			settings = append(settings, setting{"hook." + name + ".enabled", "false"})
		case e.own() || e.scope == "command" || !slices.Contains(programs, last):
		default:
			settings = append(settings, setting{e.key, own[e.key]})
			if section == "filter" && own[e.key] == "" && !slices.Contains(filters, name) {
				filters = append(filters, name)
			}
		}
	}
	return settings, filters
}

// parts of section.name.last; the name may hold dots, or be absent.
func parts(key string) (section, name, last string) {
	section, rest, _ := strings.Cut(key, ".")
	if i := strings.LastIndexByte(rest, '.'); i >= 0 {
		return section, rest[:i], rest[i+1:]
	}
	return section, "", rest
}

// require has the filters that were switched off fail, rather than let content
// pass unfiltered; or else the other way round.
func require(filters []string, fail bool) (settings []setting) {
	for _, name := range filters {
		settings = append(settings, setting{"filter." + name + ".required", strconv.FormatBool(fail)})
	}
	return settings
}
