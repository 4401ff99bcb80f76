package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/agent/prompt"
	"coder/internal/agent/supervisor"
	"coder/internal/agent/toolrun"
	"coder/internal/config"
	"coder/internal/core/event"
	"coder/internal/core/secret"
	"coder/internal/core/uip"
	"coder/internal/host/authkey"
	"coder/internal/host/lsp"
	"coder/internal/host/repofile"
	"coder/internal/host/shell"
	"coder/internal/model/openai"
	"coder/internal/model/provider"
	"coder/internal/model/scripted"
	"coder/internal/model/textcalls"
	"coder/internal/model/transport"
	"coder/internal/policy/judge"
	"coder/internal/policy/mode"
	"coder/internal/policy/rule"
	"coder/internal/policy/trust"
	"coder/internal/tool"
)

// house is the program put together for one workspace.
type house struct {
	env   Env
	flags *flags
	conf  config.Config
	home  string        // CODER_HOME
	root  string        // the workspace
	shell shell.Program // runs every command
	warn  func(string)

	report      config.Report
	servers     []lsp.Kind // language servers of the settings
	trusted     trust.State
	state       *mode.State            // the mode of work
	judge       *judge.Judge           // once a session is open
	set         tool.Set               // what the model may call
	lore        *lore                  // once it is asked for
	damaged     map[string]bool        // sessions that may lack records that they had
	projectedTo func(id string) uint64 // the newest record in a session file
	told        map[string]bool        // what was said once
	kept        *supervisor.Supervisor // once there is one
	chosen      atomic.Pointer[string] // the model that /model chose
	secret      *authkey.Key           // once it is asked for
	keeping     keeping                // once sessions are opened
	attended    bool                   // a person is there to be asked
	typed       string                 // the prompt of a run, without what was piped in beside it
}

// newHouse reads the configuration and checks that work can be done in dir.
func newHouse(env Env, fl *flags, warn func(string)) (*house, error) {
	root, err := findRoot(env, fl)
	if err != nil {
		return nil, err
	}
	h := &house{env: env, flags: fl, root: root, home: homeDir(env), shell: shell.Find(), warn: warn, damaged: make(map[string]bool), told: make(map[string]bool)}
	if err := h.checkData(); err != nil {
		return nil, err
	}
	if h.trusted, err = h.trust().Of(root); err != nil {
		warn(fmt.Sprintf("the workspace counts as not trusted: %v", err))
	}
	conf, report, err := config.Load(h.loadOptions())
	if err != nil {
		return nil, &exitError{code: ExitConfig, err: err}
	}
	for _, w := range report.Warnings {
		warn(w.String())
	}
	h.conf, h.report = conf, report
	if err := errors.Join(h.newState(), h.checkModelInfo(), h.checkUnbuilt(), h.readServers()); err != nil {
		return nil, err
	}
	if conf.Runtime.WorkspaceRoot != "" {
		if h.root, err = absolute(root, conf.Runtime.WorkspaceRoot); err != nil {
			return nil, err
		}
		return h, h.checkData()
	}
	return h, nil
}

// findRoot is the folder to work in.
func findRoot(env Env, fl *flags) (string, error) {
	if env.Dir == "" && !filepath.IsAbs(fl.dir) {
		return "", inputf("the working directory no longer exists; change to another or use --cwd")
	}
	return absolute(env.Dir, fl.dir)
}

// absolute resolves dir from base and makes sure that it is a folder.
func absolute(base, dir string) (string, error) {
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(base, dir)
	}
	info, err := os.Stat(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "", inputf("there is no folder %s", dir)
	case err != nil:
		return "", inputf("cannot work in %s: %v", dir, err)
	case !info.IsDir():
		return "", inputf("%s is not a folder", dir)
	}
	return filepath.Clean(dir), nil
}

// homeDir is where the user's own configuration lives; "" if there is none.
func homeDir(env Env) string {
	if dir := env.Getenv("CODER_HOME"); dir != "" {
		return dir
	}
	if home := env.Getenv("HOME"); home != "" {
		return filepath.Join(home, ".coder")
	}
	return ""
}

func (h *house) loadOptions() config.Options {
	o := config.Options{Home: h.home, Project: h.root, File: h.flags.configFile, Getenv: h.env.Getenv, TrustProject: h.trusted == trust.Trusted}
	if o.File != "" && !filepath.IsAbs(o.File) {
		o.File = filepath.Join(h.env.Dir, o.File)
	}
	set := func(key string, value any, flag string) {
		o.Flags = append(o.Flags, config.Override{Key: key, Value: value, Name: flag})
	}
	if h.flags.model != "" {
		set("provider.model", h.flags.model, "--model")
	}
	if h.flags.maxSteps > 0 {
		set("runtime.max_steps", h.flags.maxSteps, "--max-steps")
	}
	if h.flags.autoApprove {
		set("approval.auto_approve_ask", true, "--auto-approve")
	}
	return o
}

// data is the folder that holds what the program keeps about the workspace.
func (h *house) data() string { return filepath.Join(h.root, ".coder") }

// checkData refuses a data folder that is not ours to write to.
func (h *house) checkData() error {
	if h.flags.ephemeral {
		return nil
	}
	info, err := os.Lstat(h.data())
	switch {
	case err != nil:
		return nil // it will be made, or its making will say why not
	case info.Mode()&fs.ModeSymlink != 0:
		target, err := filepath.EvalSymlinks(h.data())
		inside, relErr := filepath.Rel(h.root, target)
		if err != nil || relErr != nil || strings.HasPrefix(inside, "..") {
			return configf("%s is a link that leads out of the project; remove it, or use --no-session-persistence", h.data())
		}
	case !info.IsDir():
		return configf("%s is not a folder; remove it, or use --no-session-persistence", h.data())
	}
	return nil
}

func (h *house) wrap(s event.Store) event.Store {
	if h.env.WrapStore != nil {
		return h.env.WrapStore(s)
	}
	return s
}

// supervise builds the mind of the program around person.
func (h *house) supervise(person uip.Interactor) (*supervisor.Supervisor, error) {
	logs, sessions, err := h.stores()
	if err != nil {
		return nil, err
	}
	h.kept = supervisor.New(supervisor.Config{
		Store: logs, Sessions: sessions, Person: person, Engine: h.engine,
		Dir: h.root, NewID: newID, Now: h.env.Now,
		Damaged: h.hadMore, Key: h.key, Doubt: h.doubt,
	})
	return h.kept, nil
}

// hadMore reports whether a session that has so many records now is known to
// have had more. What a crash left unfinished was never part of it.
func (h *house) hadMore(id string, last uint64) bool {
	if h.damaged[id] {
		return true
	}
	at := h.projectedTo(id)
	if at > last {
		h.warn(fmt.Sprintf("session %s: records %d to %d are missing from %s", id, last+1, at, filepath.Join(h.logs(), id)))
	}
	return at > last
}

// engine builds what one session runs on.
func (h *house) engine(sessionID string, spawn supervisor.Spawn) (supervisor.Engine, error) {
	model, err := h.provider()
	if err != nil {
		return supervisor.Engine{}, err
	}
	hands, err := h.hands(sessionID)
	if err != nil {
		return supervisor.Engine{}, err
	}
	h.set = hands.set
	judge, err := h.newJudge(hands.confiner, hands.terrain)
	if err != nil {
		return supervisor.Engine{}, errors.Join(err, hands.close())
	}
	if err := hands.confiner.Check(context.Background()); err != nil {
		return supervisor.Engine{}, errors.Join(err, hands.close())
	}
	h.judge = judge
	runner := &toolrun.Runner{
		Policy: h.inCommands(judge), NewID: func() string { return newID("ui") }, Now: h.env.Now, Keeper: hands.keeper, Conceal: hands.conceals.Text, Waiver: h.waiver(),
	}
	memory := h.remember(judge)
	if memory != nil {
		runner.Memory = memory
	}
	settings := h.settings(hands.set)
	hands.crew.settings, hands.crew.runner, hands.crew.spawn = settings, runner, spawn
	commands, changes, observe := h.commands(sessionID, hands, judge, memory)
	return supervisor.Engine{
		Engine: orchestrator.Engine{
			Provider: model, Runner: runner, Settings: settings, Mode: h.state, Commands: commands, Todos: hands.todos.List,
			Files: hands.project, Library: h.loreFor(hands), PutAside: h.putAside(hands, sessionID),
		},
		ModeChosen: h.flags.mode != "", OnInput: h.hear(judge),
		Observe: func(r event.Record, when supervisor.When) { hands.observe(r, when); observe(r) },
		Undo:    hands.undo, Redo: hands.redo, CutOff: hands.history.CutOff, ChangesSince: h.since(hands, changes), Close: hands.close,
	}, nil
}

// hear lets the judge know what the person said. What was piped in beside a
// prompt is not theirs.
func (h *house) hear(j *judge.Judge) func(string) {
	return func(words string) { j.Hear(cmp.Or(h.typed, words)) }
}

// conceals blots providers' keys out of what is shown and kept.
func (h *house) conceals() *secret.Concealer {
	return secret.Conceal(h.report.Secrets(h.env.Environ))
}

// settings are read at the start of each turn: they follow the mode.
func (h *house) settings(set tool.Set) func() orchestrator.Settings {
	system := h.systemPrompt()
	return func() orchestrator.Settings {
		m, _ := h.state.Current()
		return orchestrator.Settings{
			Model: h.modelName(), Mode: m.Name, System: system(m), Tools: set.Without(func(name string) bool { return !m.Has(name) || h.forbidden(name) }),
			MaxSteps: h.conf.Runtime.MaxSteps, ContextLimit: h.contextLimit(),
			StopOnReject: h.conf.Approval.OnReject == "stop", DirectBang: h.conf.Approval.Bang == "direct",
			Compaction: h.compaction(), Verification: h.verification(), TodoForComplex: h.conf.Workflow.RequireTodoForComplex,
		}
	}
}

func (h *house) compaction() orchestrator.Compaction {
	c := h.conf.Compaction
	return orchestrator.Compaction{Auto: c.Auto, Prune: c.Prune, Threshold: c.Threshold, Recent: c.RecentMessages}
}

func (h *house) verification() orchestrator.Verification {
	w := h.conf.Workflow
	return orchestrator.Verification{
		Enabled: w.AutoVerifyAfterEdit, MaxAttempts: w.MaxVerifyAttempts, Commands: w.VerifyCommands, Trusted: h.trusted == trust.Trusted,
	}
}

// forbidden reports whether this run forbids every use of a tool.
func (h *house) forbidden(name string) bool {
	return slices.ContainsFunc(h.flags.denyTools, func(s rule.Spec) bool { return s.On == "" && strings.EqualFold(s.Tool, name) })
}

func (h *house) modelName() string {
	if name := h.chosen.Load(); name != nil {
		return *name
	}
	if h.conf.Provider.Model == "" && h.scripted() {
		return "script"
	}
	return h.conf.Provider.Model
}

func (h *house) scripted() bool { return h.flags.script != "" || h.flags.demo }

// systemPrompt reads the rules once and writes the system text for a mode.
func (h *house) systemPrompt() func(mode.Mode) string {
	rules := h.rules()
	date := h.env.Now().Format(time.DateOnly)
	return func(m mode.Mode) string {
		return prompt.System(prompt.Facts{
			Dir: h.root, Platform: runtime.GOOS + "/" + runtime.GOARCH, Date: date,
			Mode: m.Name, ModeText: m.Prompt, Skills: h.skillSummary(m), Rules: rules, Append: h.flags.appendSystem,
		})
	}
}

// provider builds the model's side: the script where one is given, else the
// configured endpoint, with retries and the chosen way of calling tools.
func (h *house) provider() (provider.Provider, error) {
	p, err := h.wireProvider()
	if err != nil {
		return nil, err
	}
	p = provider.Retry(p, provider.Backoff{Retries: h.conf.Provider.MaxRetries, Jitter: rand.Float64, Sleep: h.env.Sleep})
	p = provider.Fallback(p, h.conf.Provider.FallbackModels...)
	return textcalls.Wrap(p, textcalls.Mode(h.conf.Provider.ToolMode)), nil
}

func (h *house) wireProvider() (provider.Provider, error) {
	if h.flags.demo {
		return h.demoModel()
	}
	if h.flags.script != "" {
		return readScript(filepath.Join(h.scriptDir(), h.flags.script))
	}
	c := h.conf.Provider
	switch {
	case c.Kind != "openai":
		return nil, configf("provider.kind %q is not built yet; use an OpenAI-compatible endpoint (openai)", c.Kind)
	case c.BaseURL == "" && h.needsTrust("provider."):
		return nil, h.untrusted("the provider is set by the project's own configuration")
	case c.BaseURL == "":
		return nil, configf("no provider is configured; set CODER_BASE_URL, CODER_API_KEY and CODER_MODEL (see README), or try: coder demo")
	case c.Model == "":
		return nil, configf("no model is chosen; use --model NAME or CODER_MODEL")
	}
	return h.client()
}

// maxNamedFile bounds the files that the person names.
const maxNamedFile = 64 << 20

// client speaks to the configured endpoint.
func (h *house) client() (*openai.Client, error) {
	c := h.conf.Provider
	var ca []byte
	if c.CAFile != "" {
		var err error
		if ca, err = repofile.Own(c.CAFile, maxNamedFile); err != nil {
			return nil, configf("provider.ca_file: %v", err)
		}
	}
	return openai.New(transport.Options{
		BaseURL: c.BaseURL, APIKey: c.APIKey, Headers: c.Headers, CA: ca,
		Timeout:     time.Duration(c.TimeoutMS) * time.Millisecond,
		IdleTimeout: time.Duration(c.IdleTimeoutMS) * time.Millisecond,
		Proxy:       http.ProxyFromEnvironment, SendReasoning: c.SendReasoning, UserAgent: "coder/" + Version, Now: h.env.Now,
	}), nil
}

// scriptDir is what a relative script path is relative to: where the person
// is, not where the work is.
func (h *house) scriptDir() string {
	if filepath.IsAbs(h.flags.script) {
		return ""
	}
	return h.env.Dir
}

func readScript(path string) (provider.Provider, error) {
	text, err := repofile.Named(path, maxNamedFile)
	if err != nil {
		return nil, inputf("read the script: %v", err)
	}
	s, err := scripted.Parse(string(text))
	if err != nil {
		return nil, inputf("%s: %v", path, err)
	}
	return scripted.New(s, scripted.Options{}), nil
}

// childEnv is the environment of the commands we run: ours without any
// provider's key, and without what looks like a secret unless the person allows
// it by name.
func (h *house) childEnv() []string {
	env := slices.DeleteFunc(slices.Clone(h.env.Environ), h.withholds)
	return append(env, h.marked())
}

// withholds reports whether commands do not get a variable.
func (h *house) withholds(kv string) bool {
	name, value, _ := strings.Cut(kv, "=")
	if h.conf.Provider.APIKey != "" && value == h.conf.Provider.APIKey || slices.Contains(config.KeyVariables(), name) {
		return true
	}
	return secret.Variable(name, value) && !slices.Contains(h.conf.Safety.EnvAllow, name)
}

// withheld are the names of the variables that commands do not get.
func (h *house) withheld() (names []string) {
	for _, kv := range h.env.Environ {
		if h.withholds(kv) {
			name, _, _ := strings.Cut(kv, "=")
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// marked is the entry by which what a killed program left running in this
// workspace is found again.
func (h *house) marked() string { return "CODER_WORKSPACE=" + h.root }
