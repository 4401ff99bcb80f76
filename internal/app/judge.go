package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/verify"
	"coder/internal/config"
	"coder/internal/core/nearest"
	"coder/internal/core/sanitize"
	"coder/internal/host/program"
	"coder/internal/host/sandbox"
	"coder/internal/host/workspace"
	"coder/internal/policy"
	"coder/internal/policy/confine"
	"coder/internal/policy/judge"
	"coder/internal/policy/mode"
	"coder/internal/policy/risk"
	"coder/internal/policy/rule"
	"coder/internal/tool"
	"coder/internal/tool/dialect"
)

// safety keeps a workspace and the machine safe: it judges calls, and confines commands.
type safety struct {
	*Workspace
	protected *protectedFiles
	confiner  *confine.Confiner
	set       tool.Set     // the model's tools
	judge     *judge.Judge // nil until the tools are known
}

// newSafety returns what confines commands in a workspace. The journal, which may be nil, names the files that they
// touch. Nothing is hidden or frozen by rules before a judge reads them.
func (a *Workspace) newSafety(ws *workspace.Workspace, journal *sandbox.Journal) *safety {
	s := &safety{Workspace: a}
	s.protected = newProtectedFiles(s, ws)
	s.confiner = s.newConfiner(s.protected, journal)
	return s
}

// read makes the judge, from the rules of the user, the run and the mode.
func (a *safety) read(set tool.Set, files orchestrator.Files) (err error) {
	a.set = set
	if a.judge, err = a.newJudge(files); err == nil {
		a.Store().rules.Store(a.judge)
	}
	return err
}

func (a *safety) newJudge(files orchestrator.Files) (*judge.Judge, error) {
	c, p := a.confiner, a.protected
	given, err := a.givenRules()
	if err != nil {
		return nil, err
	}
	allow, deny := a.inOurNames(a.Options.AllowTools), a.inOurNames(a.Options.DenyTools)
	for _, s := range slices.Concat(allow, deny) {
		if near := a.misspelt(s.Tool); near != "" {
			return nil, inputf("rules of this run: unknown tool %q; did you mean %q?", s.Tool, near)
		}
	}
	for _, s := range deny {
		if known := a.knownNames(); !isPattern(s.Tool) && !strings.HasPrefix(s.Tool, "mcp__") &&
			!slices.ContainsFunc(a.meant(s.Tool), func(m string) bool { return slices.Contains(known, m) }) {
			a.warn(fmt.Sprintf("rules of this run: unknown tool %q", s.Tool))
		}
	}
	approval := a.Config.Approval
	unasked := approval.AutoApproveAsk || !approval.Interactive
	return judge.New(judge.Options{
		State: a.Modes, Root: a.Root, Home: a.Env.Getenv("HOME"), Added: a.Options.AddDirs, Bash: a.shell.Bash(), Door: a.Door(),
		Visible: slices.Concat(a.toolChains(), a.writable(), a.Options.AddDirs, []string{a.Home}),
		Frozen:  a.Config.Permission.Frozen, Tracked: p.trackedSecrets,
		Hidden:  func() bool { return c.Hides(context.Background()) },
		Freezes: func() bool { return c.Freezes(context.Background()) },
		Network: hostList(a.Config.Safety.Network), Bounds: func() bool { return c.Bounds(context.Background()) },
		Given: given, Lines: a.ownLines(), Allow: allow, Deny: deny,
		Exact:   a.Config.Permission.AllowlistMatch == "exact",
		Ignored: p.ignored(), Hosts: a.Config.Fetch.AllowHosts, Now: a.Env.Now, Settings: a.Env.gitSettingsNamed(),
		Check:   func(line string) bool { return a.trusts() && a.isCheck(files, line) },
		Unasked: unasked, Fearless: unasked && approval.DangerousNoninteractive == "allow",
	}), nil
}

// isCheck reports whether a line is on the whitelist of checks
// and is the one chosen by the settings or the project's files.
func (a *safety) isCheck(files orchestrator.Files, line string) bool {
	if line = strings.TrimSpace(line); !verify.Allowed(line) {
		return false
	}
	in := verify.Input{Configured: a.Config.Workflow.VerifyCommands, Installed: program.Has, Exists: files.Exists, Read: files.Read, List: files.List}
	return verify.Choose(in).Command == line
}

// gitSettingsNamed returns the files in which the environment makes git look for settings.
func (e Env) gitSettingsNamed() []string {
	files := []string{e.Getenv("GIT_CONFIG_GLOBAL"), e.Getenv("GIT_CONFIG_SYSTEM")}
	if dir := e.Getenv("XDG_CONFIG_HOME"); dir != "" {
		files = append(files, filepath.Join(dir, "git"))
	}
	return files
}

// hostList returns the hosts that commands may reach, as text; "" for all or none.
func hostList(n config.Network) string {
	if n.All() {
		return ""
	}
	return strings.Join(n, ", ")
}

// remember gives the judge its memory, including a session's
// approvals. Without a home folder there is no memory.
func (a *Site) remember(j *judge.Judge, sessionID string) *judge.Memory {
	if home, _ := a.homes(); home == "" {
		return nil
	}
	if a.Options.Ephemeral {
		sessionID = "" // the session cannot be resumed
	}
	m, err := j.Remember(filepath.Join(a.Home, "always"), sessionID, a.Config.Permission.CommandAllowlist)
	if err != nil {
		a.warn(fmt.Sprintf("the saved approvals could not be read, so coder asks again: %v", err))
	}
	return m
}

// Memory returns the permanent approvals in this project.
func (a *Workspace) Memory() (*judge.Memory, error) {
	m := a.remember(judge.New(judge.Options{State: a.Modes, Root: a.Root, Now: a.Env.Now}), "")
	if m == nil {
		return nil, inputf("nothing is saved without a home folder")
	}
	return m, nil
}

// Revoke revokes the approvals that which names and describes them.
func Revoke(m *judge.Memory, which string) (string, error) {
	gone, err := m.Revoke(which)
	if err != nil {
		return "", err
	}
	lines := []string{}
	for _, g := range gone {
		lines = append(lines, "no longer always allowed: "+sanitize.Line(g.Grant.String(), 0))
	}
	if len(lines) == 0 {
		return "nothing is always allowed in this project", nil
	}
	return strings.Join(lines, "\n"), nil
}

// Judge returns a judge and a confiner without a session. done closes them.
func (a *Workspace) Judge() (j *judge.Judge, c *confine.Confiner, done func() error, err error) {
	ws, err := workspace.Open(a.Root, a.Options.AddDirs...)
	if err != nil {
		return nil, nil, nil, inputf("open the workspace: %v", err)
	}
	s := a.newSafety(ws, nil)
	if err := s.read(tool.Set{}, project{ws}); err != nil {
		return nil, nil, nil, errors.Join(err, ws.Close())
	}
	a.remember(s.judge, "")
	return s.judge, s.confiner, func() error { return errors.Join(s.confiner.Close(), ws.Close()) }, nil
}

// givenRules returns the user's and the project's rules, without the defaults.
func (a *safety) givenRules() (map[string]risk.Patterns, error) {
	given := make(map[string]risk.Patterns)
	add := func(tool, pattern, word string) error {
		v, err := policy.ParseVerdict(word)
		if err != nil {
			return configf("permission.%s: %v", tool, err)
		}
		if given[tool] == nil {
			given[tool] = make(risk.Patterns)
		}
		if was, twice := given[tool][pattern]; twice { // under several names
			v = min(v, was)
		}
		given[tool][pattern] = v
		return nil
	}
	for name, patterns := range a.Config.Permission.Tools {
		if err := a.checkRuleName(name); err != nil {
			return nil, err
		}
		for pattern, word := range patterns {
			if a.Report.RuleOrigin(name, pattern) == (config.Origin{}) {
				continue
			}
			for _, member := range a.meant(name) {
				if err := add(member, pattern, word); err != nil {
					return nil, err
				}
			}
		}
	}
	if a.Report.Origin("permission.default") == (config.Origin{}) {
		return given, nil
	}
	return given, add("default", "*", a.Config.Permission.Default)
}

// ownLines returns the command patterns that the user's own settings allow.
func (a *Site) ownLines() (patterns []string) {
	for pattern, word := range a.Config.Permission.Tools[rule.Commands] {
		if o := a.Report.RuleOrigin(rule.Commands, pattern); word == policy.Allow.String() && o != (config.Origin{}) && !o.Project {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}

// newState returns the user's initial mode, with the tools that they switched on or off.
func (a *Site) newState() (*mode.State, error) {
	agents := a.Config.Agents
	switches := make(map[string]map[string]bool)
	for mode, agent := range map[string]config.Agent{
		mode.Plan: agents.Plan, mode.Build: agents.Build, mode.Default: agents.DefaultMode, mode.AutoEdit: agents.AutoEdit, mode.Yolo: agents.Yolo,
	} {
		switches[mode] = make(map[string]bool)
		for name, word := range agent.Tools {
			if word != "on" && word != "off" {
				return nil, configf("agents.%s.tools.%s: expected on or off, found %q", mode, name, word)
			}
			switches[mode][name] = word == "on"
		}
	}
	start, barred, err := a.allowedMode(cmp.Or(a.Options.Mode, agents.Default))
	if err != nil {
		return nil, err
	}
	modes, err := mode.NewState(start, switches)
	if err != nil {
		return nil, configf("agents.default: %v", err)
	}
	modes.Bar(barred...)
	if a.Options.NoYolo {
		modes.Bar(mode.Yolo)
	}
	return modes, nil
}

// members returns the tools that a name means: a group's name
// means all its tools, each of which is judged by its own name.
func members(name string) []string {
	if all := tool.InGroup(strings.ToLower(name)); all != nil {
		return all
	}
	return []string{name}
}

// byMember returns specs with each group replaced by its tools.
func byMember(specs []rule.Spec) (all []rule.Spec) {
	for _, s := range specs {
		for _, s.Tool = range members(s.Tool) {
			all = append(all, s)
		}
	}
	return all
}

// checkRuleName rejects a rule for an apparently misspelt
// tool: a deny that protects nothing is worse than none.
func (a *safety) checkRuleName(name string) error {
	if near := a.misspelt(name); near != "" {
		return configf("permission.%s: unknown tool %q; did you mean %q?", name, name, near)
	}
	if known := a.knownNames(); !isPattern(name) && !slices.ContainsFunc(a.meant(name), func(m string) bool { return slices.Contains(known, m) }) {
		a.warn(fmt.Sprintf("permission.%s: unknown tool %q", name, name))
	}
	return nil
}

// misspelt returns the tool that a name in a rule probably means, or "". A known name,
// a pattern, and an MCP server's tool, which may be added later, are not misspelt.
func (a *safety) misspelt(name string) string {
	known := a.knownNames()
	if isPattern(name) || slices.ContainsFunc(a.meant(name), func(m string) bool { return slices.Contains(known, m) }) {
		return ""
	}
	near := nearest.Of(name, known)
	if theirs := dialect.Ours(name); len(theirs) > 0 && !slices.Contains(theirs, near) {
		return "" // another agent's tool, of which coder has another
	}
	return near
}

// inOurNames returns this run's rules with coder's names for the tools.
func (a *safety) inOurNames(specs []rule.Spec) (all []rule.Spec) {
	for _, s := range specs {
		names := []string{s.Tool}
		if !isPattern(s.Tool) {
			names = a.meant(s.Tool)
		}
		for _, s.Tool = range names {
			all = append(all, byMember([]rule.Spec{s})...)
		}
	}
	return all
}

// isPattern reports whether a name in a rule may match a tool that is added later.
func isPattern(name string) bool {
	return strings.HasPrefix(strings.ToLower(name), "mcp__") || strings.ContainsAny(name, "*?[")
}

// meant returns the tools that a name in a rule means, ignoring case, also by another agent's name.
func (a *safety) meant(name string) []string {
	if ours := dialect.Inward(name); ours != nil {
		return ours
	}
	if t, ok := a.set.Lookup(name); ok {
		return members(t.Spec().Name)
	}
	for _, known := range a.knownNames() {
		if strings.EqualFold(known, name) {
			return members(known)
		}
	}
	return members(name)
}

// knownNames returns the names of tools and classes that can have rules.
func (a *safety) knownNames() []string {
	known := append(tool.Names(), "default", "note", "external_directory")
	for s := range a.set.Specs() {
		known = append(known, s.Name)
	}
	return known
}
