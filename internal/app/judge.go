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
	tools     tool.Set     // the model's tools
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
func (a *safety) read(set tool.Set, files orchestrator.FileFinder) (err error) {
	a.tools = set
	if a.judge, err = a.newJudge(files); err == nil {
		a.Store().rules.Store(a.judge)
	}
	return err
}

func (a *safety) newJudge(files orchestrator.FileFinder) (*judge.Judge, error) {
	c, p := a.confiner, a.protected
	given, err := a.configuredRules()
	if err != nil {
		return nil, err
	}
	allow, deny := a.normalizeSpecs(a.Options.AllowTools), a.normalizeSpecs(a.Options.DenyTools)
	for _, s := range slices.Concat(allow, deny) {
		if near := a.suggestRuleName(s.Tool); near != "" {
			return nil, inputErrorf("rules of this run: unknown tool %q; did you mean %q?", s.Tool, near)
		}
	}
	for _, s := range deny {
		if known := a.ruleNames(); !isPattern(s.Tool) && !strings.HasPrefix(s.Tool, "mcp__") &&
			!slices.ContainsFunc(a.matchRuleName(s.Tool), func(m string) bool { return slices.Contains(known, m) }) {
			a.warn(fmt.Sprintf("rules of this run: unknown tool %q", s.Tool))
		}
	}
	approval := a.Config.Approval
	unasked := approval.AutoApproveAsk || !approval.Interactive
	return judge.New(judge.Options{
		State: a.ModeState, Root: a.Root, Home: a.Env.Getenv("HOME"), Added: a.Options.AddDirs, Bash: a.shell.IsBash(),
		Launcher: a.Launcher(),
		Visible:  slices.Concat(a.toolchainDirs(), a.writableDirs(), a.Options.AddDirs, []string{a.Home}),
		Frozen:   a.Config.Permission.Frozen, Tracked: p.trackedSecrets,
		HidesSecrets:   func() bool { return c.HidesSecrets(context.Background()) },
		EnforcesFrozen: func() bool { return c.EnforcesFrozen(context.Background()) },
		Network:        hostListText(a.Config.Safety.Network),
		LimitsHosts:    func() bool { return c.LimitsHosts(context.Background()) },
		UserRules:      given, Lines: a.userPatterns(), Allow: allow, Deny: deny,
		Exact:   a.Config.Permission.AllowlistMatch == "exact",
		Ignored: ignoreMatcher(p.ignores), Hosts: a.Config.Fetch.AllowHosts, Now: a.Env.Now, Settings: a.Env.gitConfigFiles(),
		IsCheck:     func(line string) bool { return a.isTrusted() && a.isAllowedCheck(files, line) },
		AutoApprove: unasked, AutoApproveRisks: unasked && approval.DangerousNoninteractive == "allow",
	}), nil
}

// isAllowedCheck reports whether a line is on the whitelist of checks
// and is the one chosen by the settings or the project's files.
func (a *safety) isAllowedCheck(files orchestrator.FileFinder, line string) bool {
	if line = strings.TrimSpace(line); !verify.IsAllowed(line) {
		return false
	}
	in := verify.ChoiceInput{Configured: a.Config.Workflow.VerifyCommands, IsInstalled: program.IsInstalled,
		FileExists: files.Exists, ReadFile: files.Read, ListDir: files.List}
	return verify.ChooseCheck(in).Command == line
}

// gitConfigFiles returns the files in which the environment makes git look for settings.
func (e Env) gitConfigFiles() []string {
	files := []string{e.Getenv("GIT_CONFIG_GLOBAL"), e.Getenv("GIT_CONFIG_SYSTEM")}
	if dir := e.Getenv("XDG_CONFIG_HOME"); dir != "" {
		files = append(files, filepath.Join(dir, "git"))
	}
	return files
}

// hostListText returns the hosts that commands may reach, as text; "" for all or none.
func hostListText(n config.Network) string {
	if n.IsUnlimited() {
		return ""
	}
	return strings.Join(n, ", ")
}

// attachMemory gives the judge its memory, including a session's
// approvals. Without a home folder there is no memory.
func (a *Site) attachMemory(j *judge.Judge, sessionID string) *judge.Memory {
	if home, _ := a.userDirs(); home == "" {
		return nil
	}
	if a.Options.Ephemeral {
		sessionID = "" // the session cannot be resumed
	}
	m, err := j.OpenMemory(filepath.Join(a.Home, "always"), sessionID, a.Config.Permission.CommandAllowlist)
	if err != nil {
		a.warn(fmt.Sprintf("the saved approvals could not be read, so coder asks again: %v", err))
	}
	return m
}

// ApprovalMemory returns the permanent approvals in this project.
func (a *Workspace) ApprovalMemory() (*judge.Memory, error) {
	m := a.attachMemory(judge.New(judge.Options{State: a.ModeState, Root: a.Root, Now: a.Env.Now}), "")
	if m == nil {
		return nil, inputErrorf("nothing is saved without a home folder")
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

// NewJudge returns a judge and a confiner without a session. done closes them.
func (a *Workspace) NewJudge() (j *judge.Judge, c *confine.Confiner, done func() error, err error) {
	ws, err := workspace.Open(a.Root, a.Options.AddDirs...)
	if err != nil {
		return nil, nil, nil, inputErrorf("open the workspace: %v", err)
	}
	s := a.newSafety(ws, nil)
	if err := s.read(tool.Set{}, projectFiles{ws}); err != nil {
		return nil, nil, nil, errors.Join(err, ws.Close())
	}
	a.attachMemory(s.judge, "")
	return s.judge, s.confiner, func() error { return errors.Join(s.confiner.Close(), ws.Close()) }, nil
}

// configuredRules returns the user's and the project's rules, without the defaults.
func (a *safety) configuredRules() (map[string]risk.Patterns, error) {
	given := make(map[string]risk.Patterns)
	add := func(tool, pattern, word string) error {
		v, err := policy.ParseVerdict(word)
		if err != nil {
			return configErrorf("permission.%s: %v", tool, err)
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
			for _, member := range a.matchRuleName(name) {
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

// userPatterns returns the command patterns that the user's own settings allow.
func (a *Site) userPatterns() (patterns []string) {
	for pattern, word := range a.Config.Permission.Tools[rule.ClassCommand] {
		if o := a.Report.RuleOrigin(rule.ClassCommand, pattern); word == policy.Allow.String() && o != (config.Origin{}) &&
			!o.Project {
			patterns = append(patterns, pattern)
		}
	}
	return patterns
}

// initMode returns the user's initial mode, with the tools that they switched on or off.
func (a *Site) initMode() (*mode.State, error) {
	agents := a.Config.Agents
	switches := make(map[string]map[string]bool)
	for mode, agent := range map[string]config.Agent{
		mode.Plan: agents.Plan, mode.Build: agents.Build, mode.Default: agents.DefaultMode, mode.AutoEdit: agents.AutoEdit,
		mode.Yolo: agents.Yolo,
	} {
		switches[mode] = make(map[string]bool)
		for name, word := range agent.Tools {
			if word != "on" && word != "off" {
				return nil, configErrorf("agents.%s.tools.%s: expected on or off, found %q", mode, name, word)
			}
			switches[mode][name] = word == "on"
		}
	}
	start, barred, err := a.startMode(cmp.Or(a.Options.Mode, agents.Default))
	if err != nil {
		return nil, err
	}
	modes, err := mode.NewState(start, switches)
	if err != nil {
		return nil, configErrorf("agents.default: %v", err)
	}
	modes.Forbid(barred...)
	if a.Options.NoYolo {
		modes.Forbid(mode.Yolo)
	}
	return modes, nil
}

// groupTools returns the tools that a name means: a group's name
// means all its tools, each of which is judged by its own name.
func groupTools(name string) []string {
	if all := tool.NamesInGroup(strings.ToLower(name)); all != nil {
		return all
	}
	return []string{name}
}

// expandGroups returns specs with each group replaced by its tools.
func expandGroups(specs []rule.Spec) (all []rule.Spec) {
	for _, s := range specs {
		for _, s.Tool = range groupTools(s.Tool) {
			all = append(all, s)
		}
	}
	return all
}

// checkRuleName rejects a rule for an apparently misspelt
// tool: a deny that protects nothing is worse than none.
func (a *safety) checkRuleName(name string) error {
	if near := a.suggestRuleName(name); near != "" {
		return configErrorf("permission.%s: unknown tool %q; did you mean %q?", name, name, near)
	}
	if known := a.ruleNames(); !isPattern(name) && !slices.ContainsFunc(a.matchRuleName(name),
		func(m string) bool { return slices.Contains(known, m) }) {
		a.warn(fmt.Sprintf("permission.%s: unknown tool %q", name, name))
	}
	return nil
}

// suggestRuleName returns the tool that a name in a rule probably means, or "". A known name,
// a pattern, and an MCP server's tool, which may be added later, are not misspelt.
func (a *safety) suggestRuleName(name string) string {
	known := a.ruleNames()
	if isPattern(name) || slices.ContainsFunc(a.matchRuleName(name),
		func(m string) bool { return slices.Contains(known, m) }) {
		return ""
	}
	near := nearest.Find(name, known)
	if theirs := dialect.Equivalents(name); len(theirs) > 0 && !slices.Contains(theirs, near) {
		return "" // another agent's tool, of which coder has another
	}
	return near
}

// normalizeSpecs returns this run's rules with coder's names for the tools.
func (a *safety) normalizeSpecs(specs []rule.Spec) (all []rule.Spec) {
	for _, s := range specs {
		names := []string{s.Tool}
		if !isPattern(s.Tool) {
			names = a.matchRuleName(s.Tool)
		}
		for _, s.Tool = range names {
			all = append(all, expandGroups([]rule.Spec{s})...)
		}
	}
	return all
}

// isPattern reports whether a name in a rule may match a tool that is added later.
func isPattern(name string) bool {
	return strings.HasPrefix(strings.ToLower(name), "mcp__") || strings.ContainsAny(name, "*?[")
}

// matchRuleName returns the tools that a name in a rule means, ignoring case, also by another agent's name.
func (a *safety) matchRuleName(name string) []string {
	if ours := dialect.FromExternal(name); ours != nil {
		return ours
	}
	if t, ok := a.tools.Lookup(name); ok {
		return groupTools(t.Spec().Name)
	}
	for _, known := range a.ruleNames() {
		if strings.EqualFold(known, name) {
			return groupTools(known)
		}
	}
	return groupTools(name)
}

// ruleNames returns the names of tools and classes that can have rules.
func (a *safety) ruleNames() []string {
	known := append(tool.BuiltinNames(), "default", "note", "external_directory")
	for s := range a.tools.Specs() {
		known = append(known, s.Name)
	}
	return known
}
