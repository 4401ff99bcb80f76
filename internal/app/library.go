package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/prompt"
	"coder/internal/authored/frontmatter"
	"coder/internal/authored/outputstyle"
	"coder/internal/authored/plugin"
	"coder/internal/authored/rulefile"
	"coder/internal/authored/skills"
	"coder/internal/authored/usercommand"
	"coder/internal/config"
	"coder/internal/core/secret"
	"coder/internal/host/repofile"
	"coder/internal/policy"
	"coder/internal/policy/mode"
	"coder/internal/policy/risk"
	"coder/internal/policy/rule"
	"coder/internal/policy/trust"
	"coder/internal/slash"

	"github.com/bmatcuk/doublestar/v4"
)

// Authored is what users, projects and plugins wrote for the model: rules, skills, commands, agents and the memory.
type Authored struct {
	*Extensions
	shownMessages map[string]bool                   // messages shown once
	libraryCache  *library                          // once needed
	memoryIndex   atomic.Pointer[string]            // nil: not read yet
	style         atomic.Pointer[outputstyle.Style] // nil: not read yet
	hidingOnce    sync.Once                         // makes hiding
	hiding        *rule.Book                        // what is hidden from every tool
}

// library is the skills and commands that the user and the project wrote.
type library struct {
	skills          *skills.Catalogue
	commands        *usercommand.Catalogue
	userCommandsDir string // the folder of the person's own commands; "" if there is none
	hiddenReported  bool   // hidden commands were reported
}

// loadLibrary returns the workspace's skills and commands. It reads them on first use, and reports problems once.
func (a *Authored) loadLibrary() *library {
	if a.libraryCache != nil {
		return a.libraryCache
	}
	a.libraryCache = &library{skills: skills.New(a.skillRoots()...)}
	// A project's folder could contain the full names of plugins' commands, too.
	roots := a.pluginRoots(func(p plugin.Plugin) []frontmatter.Root { return p.Commands })
	if !a.Options.IgnoreConfig {
		roots = append(roots, usercommand.Root{Path: ".coder/commands",
			Files: a.projectFiles(a.Root).Sub(".coder/commands")})
	}
	if home, _ := a.userDirs(); home != "" {
		a.libraryCache.userCommandsDir = filepath.ToSlash(filepath.Join(home, "commands"))
		roots = append(roots, usercommand.Root{Path: a.libraryCache.userCommandsDir,
			Files: repofile.OwnDir(a.libraryCache.userCommandsDir)})
	}
	roots = append(roots, a.claudeRoots("commands")...)
	a.libraryCache.commands = usercommand.New(roots...)
	_, badSkills := a.libraryCache.skills.List()
	for _, w := range slices.DeleteFunc(badSkills, a.known) {
		a.warn(fmt.Sprintf("skill file %s", w))
	}
	_, badCommands := a.libraryCache.commands.List()
	for _, w := range slices.DeleteFunc(badCommands, a.known) {
		a.warn(fmt.Sprintf("command file %s", w))
	}
	return a.libraryCache
}

// claudeRoots returns the folders of one kind that Claude Code
// also reads: a trusted project's, and the user's own.
func (a *Authored) claudeRoots(kind string) (roots []frontmatter.Root) {
	if shown := ".claude/" + kind; a.Trusted == trust.Trusted {
		roots = append(roots, frontmatter.Root{Path: shown, Files: a.projectFiles(a.Root).Sub(shown)})
	}
	if _, home := a.userDirs(); home != "" {
		dir := filepath.ToSlash(filepath.Join(home, ".claude", kind))
		roots = append(roots, frontmatter.Root{Path: dir, Files: repofile.OwnDir(dir)})
	}
	return roots
}

// warnHiddenCommands reports custom commands that have a built-in command's name.
func (a *Authored) warnHiddenCommands(own []slash.Command) {
	l := a.loadLibrary()
	if l.hiddenReported {
		return
	}
	l.hiddenReported = true
	all, _ := l.commands.List() // other problems were reported
	for _, c := range all {
		if slices.ContainsFunc(own, func(o slash.Command) bool { return strings.EqualFold(o.Name, c.Name) }) {
			a.warn(fmt.Sprintf("command file %s: skipped: /%s is a built-in command", c.Path, c.Name))
		}
	}
}

// skillRoots returns the folders of skills in order of precedence:
// the project's, the configured ones, the user's own, the plugins'.
func (a *Authored) skillRoots() []skills.Root {
	var roots []skills.Root
	seen := make(map[string]bool)
	add := func(shown, dir string) {
		if dir = filepath.Clean(dir); !seen[dir] {
			seen[dir] = true
			roots = append(roots, skills.Root{Path: filepath.ToSlash(shown), Files: a.folderFS(dir)})
		}
	}
	others := []string{".agents", ".claude"}
	for _, folder := range slices.Concat([]string{".coder"}, others) {
		if folder == ".coder" && !a.Options.IgnoreConfig || a.Trusted == trust.Trusted {
			add(folder+"/skills", filepath.Join(a.Root, folder, "skills"))
		}
	}
	for _, dir := range a.Config.Skills.Paths {
		add(dir, a.resolvePath(dir))
	}
	home, user := a.userDirs()
	if home != "" {
		add(filepath.Join(home, "skills"), filepath.Join(home, "skills"))
	}
	if user != "" {
		for _, folder := range others {
			dir := filepath.Join(user, folder, "skills")
			add(dir, dir)
		}
	}
	return append(roots, a.pluginRoots(func(p plugin.Plugin) []frontmatter.Root { return p.Skills })...)
}

// folderFS returns a folder of custom files: a folder in the
// workspace is the repository's, any other is the user's own.
func (a *Authored) folderFS(dir string) fs.FS {
	if rel, err := filepath.Rel(a.Root, dir); err == nil && filepath.IsLocal(rel) {
		return a.projectFiles(a.Root).Sub(rel)
	}
	return repofile.OwnDir(dir)
}

// sessionLibrary is the library as a session uses it.
func (a *Session) sessionLibrary() *orchestrator.Library {
	l, t := a.loadLibrary(), a.kit
	lib := &orchestrator.Library{
		Files: t.project.ws, Commands: l.commands, Skills: l.skills, Models: a.Config.Provider.Models,
		PathExists: func(path string) bool { _, err := os.Lstat(path); return err == nil },
		AllowsTool: func(c usercommand.Command, tool string) bool { return specsNameTool(a.commandTools(c), tool) },
	}
	lib.Attachments = a.newAttachments()
	if a.Replay != nil {
		lib.Prompts, lib.Resources = a.Replay, a.Replay.resourceReader()
	} else if t.mcp != nil {
		lib.Prompts, lib.Resources = mcpPrompts{t.mcp}, mcpResources(t.mcp)
	}
	return lib
}

// withCommandHeader returns the judge combined with the running command's header. It denies tools that
// the header does not name. If the command is the user's own, tools it names need no
// approval if only the mode requires it; a project's command can only exclude tools.
func (a *Session) withCommandHeader() policy.Policy {
	j := a.judge
	return policy.Func(func(ctx context.Context, c policy.Case) (policy.Opinion, error) {
		cmd, ok := orchestrator.CommandFromContext(ctx)
		if !ok || len(cmd.AllowedTools) == 0 {
			return j.Judge(ctx, c)
		}
		allowed, own := a.commandTools(cmd), a.loadLibrary().userCommandsDir
		switch {
		case !specsNameTool(allowed, c.Tool):
			text := fmt.Sprintf("the command /%s runs without %s", cmd.Name, c.Tool)
			return policy.Opinion{Reasons: []policy.Reason{{By: "command", Text: text,
				Rule: "allowed-tools of /" + cmd.Name}}}, nil
		case own != "" && strings.HasPrefix(cmd.Path, own+"/"):
			return j.WithAllowed(allowed).Judge(ctx, c)
		}
		return j.Judge(ctx, c)
	})
}

// commandTools returns the tools in a command's header, by coder's names. It ignores unreadable entries.
func (a *Session) commandTools(c usercommand.Command) (specs []rule.Spec) {
	for _, word := range c.AllowedTools {
		list, err := rule.ParseSpecs(word)
		if err != nil {
			continue
		}
		for _, s := range list {
			if t, ok := a.tools.Lookup(s.Tool); ok {
				s.Tool = t.Spec().Name
			}
			specs = append(specs, s)
		}
	}
	return specs
}

func specsNameTool(specs []rule.Spec, tool string) bool {
	return slices.ContainsFunc(specs, func(s rule.Spec) bool {
		ok, err := path.Match(strings.ToLower(s.Tool), strings.ToLower(tool))
		return err == nil && ok
	})
}

// userRuleFiles are other agents' rule files in the user's home folder.
var userRuleFiles = []string{".gemini/GEMINI.md", ".codex/AGENTS.md", ".claude/CLAUDE.md"}

// rules reads the rules that the user and the project wrote
// for the model. It skips an unusable file with a warning.
func (a *Authored) rules() *rulefile.Book {
	find := rulefile.Finder{
		Read:      a.readRuleFile,
		Exists:    func(path string) bool { _, err := os.Lstat(path); return err == nil },
		ListNames: projectFileNames,
		Refused:   a.refusedRuleFile,
		Excluded:  a.excludedRuleFilter(),
	}
	if a.Options.IgnoreConfig {
		return &rulefile.Book{Rules: a.configuredRuleFiles(find, nil)}
	}
	place := rulefile.SearchScope{Home: a.Env.Getenv("HOME"), Dir: a.Root, Trusted: a.Trusted == trust.Trusted}
	if place.Home != "" {
		for _, name := range userRuleFiles {
			place.UserFiles = append(place.UserFiles, filepath.Join(place.Home, filepath.FromSlash(name)))
		}
	}
	if a.Home != "" {
		place.UserFiles = append(place.UserFiles, filepath.Join(a.Home, "AGENTS.md"))
	}
	book, bad := find.Find(place)
	for _, err := range bad {
		a.warnIgnored(err)
	}
	if err := repofile.CheckGit(a.Root); err != nil { // git would block on it: ignore it
		a.warnIgnored(err)
	}
	book.Rules = append(book.Rules, a.configuredRuleFiles(find, book.Rules)...)
	return book
}

// rulesForFile returns a function for the rules in book that apply to a file in the workspace.
func (a *Authored) rulesForFile(book *rulefile.Book) func(file string) []rulefile.Rule {
	return func(file string) []rulefile.Rule {
		rules, bad := book.RulesFor(a.resolvePath(file))
		for _, err := range bad {
			a.warnIgnored(err)
		}
		return rules
	}
}

// projectFileNames lists the files below a project's folder, three levels deep.
func projectFileNames(root, dir string) (names []string) {
	rel, err := filepath.Rel(root, dir)
	if err != nil {
		return nil
	}
	_ = fs.WalkDir(repofile.NewRoot(root).Sub(rel), ".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil || len(names) == maxInstructions:
			return fs.SkipAll // an unreadable folder has no rules
		case d.IsDir() && strings.Count(name, "/") >= 2:
			return fs.SkipDir
		case !d.IsDir():
			names = append(names, name)
		}
		return nil
	})
	return names
}

// excludedRuleFilter returns a function that reports whether the setting
// instructions excludes a file: with a pattern that begins with "!".
func (a *Authored) excludedRuleFilter() func(path string) bool {
	var patterns []string
	for _, pattern := range a.Config.Instructions {
		if pattern, found := strings.CutPrefix(pattern, "!"); found {
			patterns = append(patterns, filepath.ToSlash(a.resolvePath(pattern)))
		}
	}
	return func(path string) bool {
		return slices.ContainsFunc(patterns, func(pattern string) bool {
			return doublestar.MatchUnvalidated(pattern, filepath.ToSlash(path))
		})
	}
}

// maxInstructions limits the number of files in the setting instructions.
const maxInstructions = 50

// configuredRuleFiles returns the rules that the settings name in addition
// to those found. They come last, so that they are cut last.
func (a *Authored) configuredRuleFiles(find rulefile.Finder, found []rulefile.Rule) (rules []rulefile.Rule) {
	for _, pattern := range a.Config.Instructions {
		if strings.HasPrefix(pattern, "!") {
			continue
		}
		files := a.expandPattern(pattern)
		if len(files) == 0 {
			a.warn(fmt.Sprintf("instructions: %s does not exist", pattern))
		}
		for _, file := range files {
			if slices.ContainsFunc(slices.Concat(found, rules), func(r rulefile.Rule) bool { return r.Path == file }) {
				continue
			}
			if len(rules) == maxInstructions {
				a.warn(fmt.Sprintf("instructions: only the first %d files are used", maxInstructions))
				return rules
			}
			root := "" // the folder that links must not leave; the user's own may
			if rel, err := filepath.Rel(a.Root, file); err == nil && filepath.IsLocal(rel) {
				root = a.Root
			}
			err := find.Refused(file)
			var rule rulefile.Rule
			if err == nil {
				rule, err = find.ReadRule(root, file)
			}
			if err != nil {
				a.warnIgnored(err)
				continue
			}
			rules = append(rules, rule)
		}
	}
	return rules
}

// expandPattern lists the files that match a pattern in the settings.
func (a *Authored) expandPattern(pattern string) (files []string) {
	at := a.resolvePath(pattern)
	if _, err := os.Lstat(at); err == nil {
		return []string{at}
	}
	base, rest := doublestar.SplitPattern(filepath.ToSlash(at))
	names, err := doublestar.Glob(a.folderFS(base), rest, doublestar.WithFilesOnly())
	if err != nil {
		a.warn(fmt.Sprintf("instructions: %s is not a valid pattern", pattern))
	}
	for _, name := range names {
		files = append(files, filepath.Join(base, name))
	}
	slices.Sort(files)
	return files
}

// readRuleFile reads a rules file up to the usable size.
func (a *Authored) readRuleFile(root, path string) (text []byte, err error) {
	var more bool
	if root == "" {
		text, more, err = repofile.ReadOwnHead(path, prompt.MaxRulesBytes)
	} else if rel, outside := filepath.Rel(root, path); outside == nil {
		text, more, err = a.projectFiles(root).ReadHead(rel, prompt.MaxRulesBytes)
	}
	if more {
		a.warn(fmt.Sprintf("%s is too long for rules: only the first %d bytes are used", path, prompt.MaxRulesBytes))
	}
	if err == nil && len(text) == 0 {
		return nil, fs.ErrNotExist
	}
	return text, err
}

// projectFiles is a folder of the project's, whose links lead to nothing that is hidden from tools.
func (a *Authored) projectFiles(dir string) repofile.Root {
	return repofile.NewRoot(dir).Hiding(a.isHidden)
}

// isHidden reports whether a rule or an ignore file hides a file from tools that nobody approved.
func (a *Authored) isHidden(file string) bool {
	a.hidingOnce.Do(func() {
		given := make(map[string]risk.Patterns)
		for name, patterns := range a.Config.Permission.Tools {
			for _, s := range expandGroups(NormalizeSpecs([]rule.Spec{{Tool: strings.ToLower(name)}})) {
				for pattern, word := range patterns {
					v, err := policy.ParseVerdict(word)
					if err != nil || a.Report.RuleOrigin(name, pattern) == (config.Origin{}) {
						continue // the judge reports the error
					}
					if given[s.Tool] == nil {
						given[s.Tool] = make(risk.Patterns)
					}
					if was, twice := given[s.Tool][pattern]; !twice || v < was {
						given[s.Tool][pattern] = v
					}
				}
			}
		}
		lists := readIgnoreFiles(repofile.NewRoot(a.Root).Read, func(string) {}) // a session warns
		a.hiding = &rule.Book{Root: a.Root, Home: a.Env.Getenv("HOME"), UserRules: given,
			Deny: expandGroups(NormalizeSpecs(a.Options.DenyTools)), Ignored: ignoreMatcher(lists)}
	})
	if rel, err := filepath.Rel(a.Root, file); err == nil && filepath.IsLocal(rel) {
		p, _ := rule.LookupPreset(mode.Build)
		return a.hiding.SkipsInSearch(p, rel)
	}
	return a.hiding.IsDenied(rule.ClassRead, file)
}

// refusedRuleFile returns why a file that a rule file or a setting names is not read.
func (a *Authored) refusedRuleFile(file string) error {
	real, err := filepath.EvalSymlinks(file)
	if err != nil {
		return nil // reading reports it
	}
	switch {
	case secret.IsSecretFile(file), secret.IsSecretFile(real):
		err = repofile.ErrSecret
	case a.isHidden(file), a.isHidden(real):
		err = repofile.ErrHidden
	default:
		return nil
	}
	return repofile.Refuse(file, err)
}

// warnIgnored warns that a file is not used, and why.
func (a *Authored) warnIgnored(err error) {
	if p := (*fs.PathError)(nil); errors.As(err, &p) {
		a.warn(fmt.Sprintf("%s is ignored: %s", p.Path, p.Err))
		return
	}
	a.warn(err.Error())
}
