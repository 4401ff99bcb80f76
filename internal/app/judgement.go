package app

import (
	"context"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/config"
	"coder/internal/policy"
	"coder/internal/policy/risk"
	"coder/internal/policy/rule"
	"coder/internal/profile"
	"coder/internal/show"
	"coder/internal/tool"
)

// judgement is what decides about calls in one session: the mode, the rules
// and the risks.
type judgement struct {
	state *profile.State
	book  *rule.Book
	facts risk.Facts
	conf  config.Approval
}

// judgement puts the rules of the person, of this run and of the mode together.
func (h *house) judgement() (*judgement, error) {
	given, err := h.givenRules()
	if err != nil {
		return nil, err
	}
	facts := h.riskFacts()
	book := &rule.Book{
		Given: given, Allow: h.flags.allowTools, Deny: h.flags.denyTools, Exact: h.conf.Permission.AllowlistMatch == "exact",
		Root: h.root, Home: facts.Home,
		Analyse: func(line string) risk.Report { return risk.Analyse(line, facts) },
		Glob:    h.glob,
		Below:   h.below,
	}
	return &judgement{state: h.state, book: book, facts: facts, conf: h.conf.Approval}, nil
}

// givenRules are the rules that a person wrote, without the defaults.
func (h *house) givenRules() (map[string]risk.Patterns, error) {
	given := make(map[string]risk.Patterns)
	add := func(tool, pattern, word string) error {
		v, err := policy.ParseVerdict(word)
		if err != nil {
			return configf("permission.%s: %v", tool, err)
		}
		if given[tool] == nil {
			given[tool] = make(risk.Patterns)
		}
		given[tool][pattern] = v
		return nil
	}
	for name, patterns := range h.conf.Permission.Tools {
		if err := h.checkRuleName(name); err != nil {
			return nil, err
		}
		for pattern, word := range patterns {
			if h.report.RuleOrigin(name, pattern) == (config.Origin{}) {
				continue
			}
			if err := add(name, pattern, word); err != nil {
				return nil, err
			}
		}
	}
	if h.report.Origin("permission.default") == (config.Origin{}) {
		return given, nil
	}
	return given, add("default", "*", h.conf.Permission.Default)
}

// Judge is the one judge of all calls. What the mode, the rules and the risks
// say is weighed together, so that a person is asked at most once.
func (j *judgement) Judge(ctx context.Context, c policy.Case) (policy.Opinion, error) {
	m, preset := j.state.Current()
	return j.in(m, preset).Judge(ctx, c)
}

// in is the judge in a mode.
func (j *judgement) in(m profile.Mode, preset string) policy.Policy {
	p, ok := rule.PresetNamed(preset)
	if !ok {
		return policy.All() // denies
	}
	danger := risk.New(j.facts)
	if p.Unchecked {
		danger = risk.Unchecked(j.facts)
	}
	judge := policy.All(m, j.book.In(p), danger)
	switch {
	case !j.conf.AutoApproveAsk && j.conf.Interactive:
		return judge
	case j.conf.DangerousNoninteractive == "allow" && !m.ReadOnly:
		return policy.Fearless(judge)
	}
	return policy.Unasked(judge)
}

// hides reports whether searches pass over a file.
func (j *judgement) hides(file string) bool {
	_, preset := j.state.Current()
	p, ok := rule.PresetNamed(preset)
	return !ok || j.book.Hides(p, file)
}

// permissions shows what is really in force: what each sort of call meets, and
// the rules a person wrote.
func (j *judgement) permissions() show.Table {
	m, preset := j.state.Current()
	judge := j.in(m, preset)
	t := show.Table{Head: []string{"what", "verdict", "why"}}
	row := func(what, tool string, e tool.Effect) {
		o, err := judge.Judge(context.Background(), policy.Case{Tool: tool, Plan: planOf(e)})
		why := o.String()
		if err != nil {
			why = err.Error()
		}
		t.Rows = append(t.Rows, []string{what, o.Verdict.String(), why})
	}
	row("read", "read", tool.Effect{Kind: tool.Read, Target: "file.txt"})
	row("write, edit, patch", "write", tool.Effect{Kind: tool.Write, Target: "file.txt"})
	row("bash, read-only", "bash", tool.Effect{Kind: tool.Exec, Target: "ls"})
	row("bash, other", "bash", tool.Effect{Kind: tool.Exec, Target: "make"})
	row("bash, dangerous", "bash", tool.Effect{Kind: tool.Exec, Target: "rm file.txt"})
	row("fetch", "fetch", tool.Effect{Kind: tool.Net, Target: "https://example.org/"})
	row("todowrite", "todowrite", tool.Effect{Kind: tool.Note, Target: "todo list"})
	row("other tools", "mcp__server__tool", tool.Effect{Kind: tool.Unknown})
	row("secret files", "read", tool.Effect{Kind: tool.Read, Target: ".env"})
	for _, name := range slices.Sorted(maps.Keys(j.book.Given)) {
		for _, pattern := range slices.Sorted(maps.Keys(j.book.Given[name])) {
			t.Rows = append(t.Rows, []string{fmt.Sprintf("your rule %s(%s)", name, pattern), j.book.Given[name][pattern].String(), ""})
		}
	}
	for _, s := range j.book.Allow {
		t.Rows = append(t.Rows, []string{"this run: " + s.String(), "allow", ""})
	}
	for _, s := range j.book.Deny {
		t.Rows = append(t.Rows, []string{"this run: " + s.String(), "deny", ""})
	}
	if j.book.Always != nil {
		for _, what := range j.book.Always.Kept().Words() {
			t.Rows = append(t.Rows, []string{"always: " + what, "allow", ""})
		}
	}
	return t
}

func planOf(e tool.Effect) tool.Plan { return tool.Plan{Effects: []tool.Effect{e}} }

// switches are the tools a person switched on or off, by mode.
func (h *house) switches() (map[string]map[string]bool, error) {
	a := h.conf.Agents
	all := make(map[string]map[string]bool)
	for mode, agent := range map[string]config.Agent{
		profile.Plan: a.Plan, profile.Build: a.Build, profile.Default: a.DefaultMode, profile.AutoEdit: a.AutoEdit, profile.Yolo: a.Yolo,
	} {
		all[mode] = make(map[string]bool)
		for name, word := range agent.Tools {
			if word != "on" && word != "off" {
				return nil, configf("agents.%s.tools.%s: want on or off, found %q", mode, name, word)
			}
			all[mode][name] = word == "on"
		}
	}
	return all, nil
}

// newState starts the session in the mode the person chose.
func (h *house) newState() error {
	switches, err := h.switches()
	if err != nil {
		return err
	}
	mode := h.conf.Agents.Default
	if h.flags.mode != "" {
		mode = h.flags.mode
	}
	if h.state, err = profile.NewState(mode, switches); err != nil {
		return configf("agents.default: %v", err)
	}
	return nil
}

// riskFacts is what the judge of commands may ask about the world.
func (h *house) riskFacts() risk.Facts {
	at := func(path string) string {
		if filepath.IsAbs(path) {
			return path
		}
		return filepath.Join(h.root, path)
	}
	return risk.Facts{
		Exists: func(path string) bool { _, err := os.Lstat(at(path)); return err == nil },
		IsInside: func(path string) bool {
			rel, err := filepath.Rel(h.root, at(path))
			return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
		},
		RepoRuns: repoRuns,
		Home:     h.env.Getenv("HOME"), Cwd: h.root,
	}
}

// maxBelow bounds how far a folder is looked through for files that a rule is
// about.
const maxBelow = 20_000

// below yields the files below a folder.
func (h *house) below(dir string) iter.Seq[string] {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(h.root, dir)
	}
	return func(yield func(string) bool) {
		looked := 0
		_ = filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
			looked++
			switch {
			case looked > maxBelow:
				return fs.SkipAll
			case err != nil:
				return nil // what cannot be read is not read by the command either
			case d.IsDir() && (d.Name() == ".git" || d.Name() == "node_modules"):
				return fs.SkipDir
			case !d.IsDir() && !yield(name):
				return fs.SkipAll
			}
			return nil
		})
	}
}

// glob lists the files a shell pattern stands for.
func (h *house) glob(pattern string) []string {
	if !filepath.IsAbs(pattern) {
		pattern = filepath.Join(h.root, pattern)
	}
	found, _ := filepath.Glob(pattern) // a bad pattern stands for itself
	return found
}

// ruleNames are the words under permission that are not a tool of today.
var ruleNames = []string{
	"default", "read", "write", "bash", "fetch", "note",
	"patch", "question", "skill", "task", "todoread", "todowrite", "search_code", "external_directory",
	"git_status", "git_diff", "git_log", "git_add", "git_commit",
	"lsp_diagnostics", "lsp_definition", "lsp_hover", "lsp_references",
}

// checkRuleName refuses a rule for what looks like a misspelt tool: a deny that
// protects nothing is worse than none.
func (h *house) checkRuleName(name string) error {
	known := ruleNames
	for s := range h.set.Specs() {
		known = append(known[:len(known):len(known)], s.Name)
	}
	if slices.Contains(known, name) || strings.HasPrefix(name, "mcp__") {
		return nil
	}
	if _, ok := h.set.Lookup(name); ok {
		return nil
	}
	if near := config.Nearest(name, known); near != "" {
		return configf("permission.%s: there is no tool %q; did you mean %q?", name, name, near)
	}
	h.warn(fmt.Sprintf("permission.%s: there is no tool %q", name, name))
	return nil
}
