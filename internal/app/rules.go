package app

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"

	"coder/internal/agent/prompt"
	"coder/internal/host/repofile"
)

// rules are what the person and the project have written down for the model.
// What cannot be used is left out, and said to be.
func (a *App) rules() []prompt.Rule {
	find := prompt.Finder{
		Read:   a.readRules,
		Exists: func(path string) bool { _, err := os.Lstat(path); return err == nil },
	}
	rules, bad := find.Find(a.Home, a.Root)
	for _, err := range bad {
		a.ignored(err)
	}
	a.checkRepository()
	return append(rules, a.instructions(find, rules)...)
}

// maxInstructions is how many files the setting instructions may stand for.
const maxInstructions = 50

// instructions are the rules that the settings name beside those that are
// found. They come last, so that they are cut last.
func (a *App) instructions(find prompt.Finder, found []prompt.Rule) (rules []prompt.Rule) {
	for _, pattern := range a.Config.Instructions {
		files := a.expand(pattern)
		if len(files) == 0 {
			a.warn(fmt.Sprintf("instructions: there is no file %s", pattern))
		}
		for _, file := range files {
			if slices.ContainsFunc(slices.Concat(found, rules), func(r prompt.Rule) bool { return r.Path == file }) {
				continue
			}
			if len(rules) == maxInstructions {
				a.warn(fmt.Sprintf("instructions: only the first %d files are used", maxInstructions))
				return rules
			}
			rule, err := find.Rule(a.rootOf(file), file)
			if err != nil {
				a.ignored(err)
				continue
			}
			rules = append(rules, rule)
		}
	}
	return rules
}

// expand lists the files that a pattern of the settings stands for.
func (a *App) expand(pattern string) (files []string) {
	at := pattern
	if rest, ok := strings.CutPrefix(pattern, "~/"); ok {
		at = filepath.Join(a.Env.Getenv("HOME"), rest)
	}
	if !filepath.IsAbs(at) {
		at = filepath.Join(a.Root, at)
	}
	if _, err := os.Lstat(at); err == nil {
		return []string{at}
	}
	base, rest := doublestar.SplitPattern(filepath.ToSlash(at))
	names, err := doublestar.Glob(a.folder(base), rest, doublestar.WithFilesOnly())
	if err != nil {
		a.warn(fmt.Sprintf("instructions: %s is no pattern", pattern))
	}
	for _, name := range names {
		files = append(files, filepath.Join(base, name))
	}
	slices.Sort(files)
	return files
}

// rootOf is the folder that a file must not lead out of, "" for one of the
// person's own.
func (a *App) rootOf(file string) string {
	if rel, err := filepath.Rel(a.Root, file); err == nil && filepath.IsLocal(rel) {
		return a.Root
	}
	return ""
}

// readRules reads a rules file, and no more of it than can be used.
func (a *App) readRules(root, path string) (text []byte, err error) {
	var more bool
	if root == "" {
		text, more, err = repofile.OwnHead(path, prompt.RulesLimit)
	} else if rel, outside := filepath.Rel(root, path); outside == nil {
		text, more, err = repofile.Below(root).Head(rel, prompt.RulesLimit)
	}
	if more {
		a.warn(fmt.Sprintf("%s is too long for rules: only its first %d bytes are used", path, prompt.RulesLimit))
	}
	if err == nil && len(text) == 0 {
		return nil, fs.ErrNotExist
	}
	return text, err
}

// ignored says that a file is not used, and why.
func (a *App) ignored(err error) {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		a.warn(fmt.Sprintf("%s is ignored: %s", p.Path, p.Err))
		return
	}
	a.warn(err.Error())
}

// checkRepository says so if the repository is one that git would wait for: it
// counts as none.
func (a *App) checkRepository() {
	if err := repofile.CheckGit(a.Root); err != nil {
		a.ignored(err)
	}
}
