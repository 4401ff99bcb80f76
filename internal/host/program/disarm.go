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

// BaseSettings are the settings of every run. They disable keys that run programs, or that write where git
// should only read.
var BaseSettings = []Setting{
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

// baseEnv are added to the environment of every run. They allow no protocol, so that git does not
// fetch a missing object through a program of the repository's choice.
var baseEnv = []string{
	"GIT_ALLOW_PROTOCOL=none", "GIT_NO_LAZY_FETCH=1", "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "GIT_PAGER=cat",
	"GIT_EDITOR=:",
}

// allowedEnv are the git variables that the user may set. All others choose another repository, another
// program or a file to write.
var allowedEnv = []string{
	"GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE",
	"GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "GIT_COMMITTER_DATE",
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM", "GIT_CEILING_DIRECTORIES",
}

// GitEnv returns env for a run of git with settings.
func GitEnv(env []string, settings []Setting) (list []string) {
	for _, v := range env {
		name, _, _ := strings.Cut(v, "=")
		if !strings.HasPrefix(strings.ToUpper(name), "GIT_") || slices.Contains(allowedEnv, name) {
			list = append(list, v)
		}
	}
	list = append(append(list, baseEnv...), "GIT_CONFIG_COUNT="+strconv.Itoa(len(settings)))
	for i, s := range settings { // unlike an argument key=value this is safe for a key that itself holds "="
		list = append(list, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s.Key), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s.Value))
	}
	return list
}

// ErrTooOld reports a git version that ignores settings from the environment.
var ErrTooOld = errors.New("git is too old; 2.32 or later is needed")

// disableSettings returns settings that, for git within the sandbox, disable values not configured by the user.
// It disables all hooks, regardless of who configured them.
func (d Launcher) disableSettings(list []byte) (settings []Setting, entries []configEntry, err error) {
	entries = parseEntries(list)
	if !acceptsSettings(entries, BaseSettings) {
		return nil, nil, ErrTooOld
	}
	yours := d.userSettingTest()
	own := make(map[string]string)
	for _, e := range entries {
		if yours(e) {
			own[e.Key] = e.Value
		}
	}
	settings = slices.Clone(BaseSettings)
	var filters []string
	for _, e := range entries {
		section, name, last := e.splitKey()
		switch {
		case section == "hook" && last == "command":
			settings = append(settings, Setting{"hook." + name + ".enabled", "false"})
		// an alias may name a command that git later removes
		case yours(e) || e.scope == "command" || section != "alias" && !slices.Contains(programKeys, last):
		default:
			settings = append(settings, Setting{e.Key, own[e.Key]})
			if section == "filter" && own[e.Key] == "" && !slices.Contains(filters, name) {
				filters = append(filters, name)
			}
		}
	}
	return append(settings, requireFilters(filters, false)...), entries, nil
}

// acceptsSettings reports whether git accepted settings from outside.
func acceptsSettings(entries []configEntry, given []Setting) bool {
	return !slices.ContainsFunc(given, func(s Setting) bool {
		return !slices.ContainsFunc(entries, func(e configEntry) bool { return e.Setting == s && e.scope == "command" })
	})
}

// configClasses sorts git's configuration by what may take effect.
type configClasses struct {
	allowed     []Setting // the user's, and harmless ones of others
	userFilters []Setting // the user's filters, which run in the folder with the files
	format      []Setting // the repository's format, which git reads only from a file
	filters     []string  // the repository's filters, which do not run
	hooksDir    string    // the configured hooks folder, if any
}

// lfsSettings is the standard filter of git-lfs: it runs only git-lfs, which takes no program from the
// folder.
var lfsSettings = []Setting{
	{"filter.lfs.clean", "git-lfs clean -- %f"}, {"filter.lfs.smudge", "git-lfs smudge -- %f"},
	{"filter.lfs.process", "git-lfs filter-process"}, {"filter.lfs.required", "true"},
}

// classify sorts the settings that git found. Settings of others than the user pass only if their key is
// known to be harmless.
func (d Launcher) classify(list []byte, given []Setting) (j configClasses, err error) {
	entries := parseEntries(list)
	if !acceptsSettings(entries, given) {
		return j, ErrTooOld
	}
	yours := d.userSettingTest()
	own := make(map[string]bool) // filters
	var off []Setting
	for _, e := range entries {
		section, name, last := e.splitKey()
		local := e.scope == "local" || e.scope == "worktree"
		switch {
		case e.scope == "command" || strings.HasPrefix(section, "include"): // included files are already in the list
			continue
		case e.Key == "core.hookspath":
			j.hooksDir = e.Value
		case local && (section == "extensions" && last != "worktreeconfig" || e.Key == "core.repositoryformatversion"):
			j.format = append(j.format, e.Setting)
		case yours(e) && section == "filter":
			own[name] = own[name] || e.Value != ""
			if slices.Contains(lfsSettings, e.Setting) {
				j.allowed = append(j.allowed, e.Setting)
			} else {
				j.userFilters = append(j.userFilters, e.Setting)
			}
		case yours(e) && !slices.Contains(remoteSections, section):
			j.allowed = append(j.allowed, e.Setting)
			if section == "hook" && last == "command" {
				off = append(off, Setting{"hook." + name + ".enabled", "false"})
			}
		case isHarmless(section, name, last):
			j.allowed = append(j.allowed, e.Setting)
		case section == "filter" && slices.Contains([]string{"clean", "smudge", "process"}, last) && !own[name] &&
			!slices.Contains(j.filters, name):
			j.filters = append(j.filters, name)
		}
	}
	j.allowed = append(j.allowed, off...)
	return j, nil
}

// userSettings returns the user's own settings.
func (d Launcher) userSettings(entries []configEntry) (settings []Setting) {
	yours := d.userSettingTest()
	for _, e := range entries {
		if section, _, _ := e.splitKey(); yours(e) && !strings.HasPrefix(section, "include") {
			settings = append(settings, e.Setting)
		}
	}
	return settings
}

// userSettingTest returns a function that reports whether a setting is the user's: it is in the user's or the
// system's configuration, and no link on the path to that file is where commands or file tools may
// write.
func (d Launcher) userSettingTest() func(configEntry) bool {
	_, places := d.finder.places()
	files := make(map[string]bool)
	return func(e configEntry) bool {
		if e.scope != "system" && e.scope != "global" {
			return false
		}
		safe, known := files[e.origin]
		if !known {
			name, isFile := strings.CutPrefix(e.origin, "file:")
			safe = isFile && filepath.IsAbs(name) && dirOnPath(name, places) == ""
			files[e.origin] = safe
		}
		return safe
	}
}

// requireFilters makes disabled filters fail instead of letting content pass unfiltered, or the opposite.
func requireFilters(filters []string, fail bool) (settings []Setting) {
	for _, name := range filters {
		settings = append(settings, Setting{"filter." + name + ".required", strconv.FormatBool(fail)})
	}
	return settings
}

// configEntry is a setting with its source.
type configEntry struct {
	Setting
	scope, origin string
}

// splitKey splits the key into section.name.last; name may contain dots or be empty.
func (e configEntry) splitKey() (section, name, last string) {
	section, name, _ = strings.Cut(e.Key, ".")
	last = name[strings.LastIndexByte(name, '.')+1:]
	return section, strings.TrimSuffix(name[:len(name)-len(last)], "."), last
}

// parseEntries parses git's list of settings, which repeats scope, origin and key-newline-value. A key without
// a value is true.
func parseEntries(list []byte) (entries []configEntry) {
	for three := range slices.Chunk(strings.Split(string(bytes.TrimSuffix(list, []byte{0})), "\x00"), 3) {
		if len(three) < 3 {
			break
		}
		key, value, has := strings.Cut(three[2], "\n")
		if !has {
			value = "true"
		}
		entries = append(entries, configEntry{Setting{key, value}, three[0], three[1]})
	}
	return entries
}

// programKeys are last parts of keys that name a program to run.
var programKeys = []string{
	"clean", "smudge", "process", // filters
	"command", "cmd", "textconv", "driver", // diffs, merges, trailers
	"program", "defaultkeycommand", "helper", // signatures, credentials
	"sshcommand", "gitproxy", "uploadpack", "receivepack", "vcs", "askpass", // fetching
}
