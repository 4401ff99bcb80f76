// Package gitsafe has git read a repository without running what the repository
// tells it to: filters, text conversion, diff and merge drivers, hooks, monitors,
// pagers, programs that check signatures, programs that fetch what is missing.
//
// Git itself is asked what is configured, so that every form a configuration can
// have counts as git reads it: includes, conditions, work trees, odd spellings.
// What a repository sets is then set back from outside, where no file of the
// repository has a say: to what the user's own configuration says, or to nothing.
package gitsafe

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

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

// List are the arguments that have git say what is configured; see [Disarm].
var List = []string{"config", "--list", "-z", "--show-scope"}

// ErrTooOld is the error of a git that does not heed settings from outside.
var ErrTooOld = errors.New("git is too old; 2.31 or later is needed")

// Disarm adds to the settings under which git listed its configuration those
// that switch off what the repository configures. It also names the filters of
// the repository that have no program any more. A hook is switched off whoever
// configured it.
func Disarm(list []byte, given []Setting) (settings []Setting, filters []string, err error) {
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
	return append(settings, Require(filters, false)...), filters, nil
}

// Require has the filters that were switched off fail, rather than let content
// pass unfiltered; or else the other way round.
func Require(filters []string, fail bool) (settings []Setting) {
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

const (
	patience  = 5 * time.Second // for git to say what is configured
	maxConfig = 1 << 20         // bytes of a configuration; a longer one is refused
)

// Inspect asks git, in a directory and with the user's environment, what is
// configured there, and returns the settings under which it can be let read. It
// fails if git cannot be asked, or would look at files elsewhere.
func Inspect(ctx context.Context, dir string, env []string) ([]Setting, error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	list, err := ask(ctx, dir, env, List...)
	if err != nil {
		return nil, err
	}
	settings, _, err := Disarm(list, Always)
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(parse(list), func(e entry) bool { return e.Key == "core.worktree" }) {
		return settings, nil
	}
	top, err := ask(ctx, dir, env, "rev-parse", "--show-toplevel")
	if err != nil {
		return nil, err
	}
	at, err := filepath.EvalSymlinks(strings.TrimSuffix(string(top), "\n"))
	real, unresolved := filepath.EvalSymlinks(dir)
	rel, apart := filepath.Rel(at, real)
	if err != nil || unresolved != nil || apart != nil || !filepath.IsLocal(rel) {
		return nil, errors.New("the repository keeps its files in another directory")
	}
	return settings, nil
}

// Remotes are the addresses of the repositories that the one of a directory knows.
func Remotes(ctx context.Context, dir string, env []string) (urls []string, err error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	list, err := ask(ctx, dir, env, List...)
	for _, e := range parse(list) {
		if strings.HasPrefix(e.Key, "remote.") && strings.HasSuffix(e.Key, ".url") {
			urls = append(urls, e.Value)
		}
	}
	return urls, err
}

func ask(ctx context.Context, dir string, env []string, args ...string) ([]byte, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.WaitDelay = dir, Environment(env, Always), &out, time.Second
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("ask git about %s: %w", dir, err)
	}
	if out.Len() > maxConfig {
		return nil, fmt.Errorf("the configuration of the repository is longer than %d bytes", maxConfig)
	}
	return out.Bytes(), nil
}
