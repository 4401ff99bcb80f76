package app

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/config"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/core/secret"
	"coder/internal/host/program"
	"coder/internal/host/repofile"
	"coder/internal/model/provider"
	"coder/internal/policy/confine"
	"coder/internal/policy/trust"
	"coder/internal/tool"
	"coder/internal/tool/mcp"
)

const (
	// mcpFile is a project's file with MCP servers.
	mcpFile    = ".mcp.json"
	maxMCPFile = 1 << 20
	// mcpStartTimeout is how long a non-interactive run waits for MCP servers before its first request.
	mcpStartTimeout = 10 * time.Second
	// mcpTestTimeout is how long coder waits for a server in a test.
	mcpTestTimeout = 90 * time.Second
)

// readMCP reads the MCP servers in order of precedence: the user's settings, the command line,
// the driver, plugins, and a trusted project. The first server gets its name, and all names
// similar to it, even if it is unusable: so no other server can replace the one that rules mean.
func (a *Extensions) readMCP() error {
	r := mcpReader{a, make(map[string]string)}
	if !a.Options.StrictMCP {
		r.addConfigured(false)
	}
	if err := r.addFromFlags(); err != nil {
		return err
	}
	for _, name := range a.Options.Driver.Servers {
		r.addServer(mcp.Server{Name: name, Type: mcp.Relay, Source: "driver"}, nil)
	}
	if a.Options.StrictMCP {
		return nil
	}
	for _, p := range a.plugins {
		for _, s := range p.servers {
			s.Source = "plugin " + p.Name
			r.addServer(s, nil)
		}
	}
	r.addConfigured(true)
	if !a.Options.IgnoreConfig {
		r.addProject()
	}
	return nil
}

// mcpReader collects MCP servers from their sources.
type mcpReader struct {
	*Extensions
	usedNames map[string]string // names by comparison key
}

// addServer adds a server, if it is usable and its name is free. Otherwise
// it warns that the server is skipped, unless it is switched off.
func (r mcpReader) addServer(s mcp.Server, err error) {
	other, taken := r.usedNames[mcp.ServerKey(s.Name)]
	switch {
	case taken && err != nil:
	case taken && other == s.Name:
		err = errors.New("another one with this name takes precedence")
	case taken:
		err = message.Errorf("the name is too similar to %s", singleLine(other))
	default:
		r.usedNames[mcp.ServerKey(s.Name)] = s.Name
		if err == nil {
			err = r.checkServer(s)
		}
	}
	if err != nil {
		r.mcpSkipped = append(r.mcpSkipped, mcp.Status{Server: s, State: mcp.Invalid, Reason: singleLine(err.Error())})
		if !s.Disabled {
			r.warn(fmt.Sprintf("the MCP server %s (%s) is skipped: %s", singleLine(s.Name), singleLine(s.Source),
				singleLine(err.Error())))
		}
		return
	}
	if s.FromProject && (s.TrustHints || s.Unconfined) {
		r.warn(fmt.Sprintf("the MCP server %s comes from a project: only you can set trust_hints and confined",
			singleLine(s.Name)))
		s.TrustHints, s.Unconfined = false, false
	}
	r.mcpServers = append(r.mcpServers, s)
}

// addServers adds the servers in one source.
func (r mcpReader) addServers(servers map[string]json.RawMessage, skipped []config.Skipped, from string, project bool) {
	for _, s := range skipped {
		r.addServer(mcp.Server{Name: s.Name, Source: from, FromProject: project, Disabled: s.Disabled}, s.Err)
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		s, err := mcp.ParseServer(name, servers[name])
		s.Source, s.FromProject = from, project
		r.addServer(s, err)
	}
}

// addConfigured adds the servers in the settings: the user's, or the project's.
func (r mcpReader) addConfigured(project bool) {
	for _, l := range r.Report.SkippedServers {
		if l.Project == project {
			r.addServer(mcp.Server{Name: l.Name, Source: l.Origin.String(), FromProject: project, Disabled: l.Disabled}, l.Err)
		}
	}
	file := filepath.Join(r.Project, ".coder", "config.json")
	for _, name := range slices.Sorted(maps.Keys(r.Config.MCPServers)) {
		from := r.Report.Origin(config.EntryKey("mcpServers", name))
		theirs := from.Source == "" || from.Source == file && filepath.Dir(file) != r.Home
		if project == theirs {
			r.addServers(map[string]json.RawMessage{name: r.Config.MCPServers[name]}, nil, from.String(), project)
		}
	}
}

// addFromFlags adds the servers from --mcp-config: files, or their
// content. Of servers with the same name, the last counts.
func (r mcpReader) addFromFlags() error {
	for _, text := range slices.Backward(r.Options.MCPConfig) {
		from := "--mcp-config"
		if !strings.HasPrefix(strings.TrimSpace(text), "{") {
			if from = text; !filepath.IsAbs(text) {
				text = filepath.Join(r.Env.Dir, text)
			}
			file, err := repofile.ReadNamed(text, maxMCPFile)
			if err != nil {
				return inputErrorf("read --mcp-config: %v", err)
			}
			text = string(file)
		}
		servers, skipped, err := config.ParseServers([]byte(text), r.Env.Getenv, nil)
		if err != nil {
			return configErrorf("%s: %v", from, err)
		}
		for name, settings := range servers {
			if _, err := mcp.ParseServer(name, settings); err != nil {
				return configErrorf("%s: mcpServers.%s: %v", from, name, err)
			}
		}
		r.addServers(servers, skipped, from, false)
	}
	return nil
}

// addProject adds the servers in the project's own file. The file may use variables, but none
// with a provider's key. In an untrusted folder, it only warns that there are servers.
func (r mcpReader) addProject() {
	text, err := repofile.NewRoot(r.Project).Read(mcpFile, maxMCPFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		r.warn(fmt.Sprintf("%s is ignored: %s", mcpFile, repofile.Reason(err)))
		return
	}
	servers, skipped, err := config.ParseServers(text, r.Env.Getenv, r.isWithheldVar)
	if err != nil {
		r.warn(fmt.Sprintf("%s is ignored: %v", mcpFile, err))
		return
	}
	if names := slices.Sorted(maps.Keys(servers)); r.Trusted != trust.Trusted {
		if len(names) > 0 {
			r.warn(fmt.Sprintf("ignored in an untrusted project: the MCP servers of %s: %s", mcpFile,
				singleLine(strings.Join(names, ", "))))
		}
		return
	}
	r.addServers(servers, skipped, mcpFile, true)
}

// newSessionMCPHost returns the host for a session's MCP servers, or nil if there are none.
func (a *Session) newSessionMCPHost(t *toolkit) *mcp.Host {
	if len(a.mcpServers) == 0 {
		return nil
	}
	taken := func(name string) bool { _, taken := t.baseTools.Lookup(name); return taken }
	return a.newMCPHost(t.ctx, slices.Clone(a.mcpServers), a.confiner, taken, a.runSampling)
}

// newMCPHost returns a host for MCP servers. Without a session, sample is nil: the host only tries the servers.
func (a *Workspace) newMCPHost(
	ctx context.Context, servers []mcp.Server, confiner *confine.Confiner, taken func(string) bool,
	sample func(context.Context, mcp.SampleRequest) (mcp.SampleResult, error),
) *mcp.Host {
	return mcp.New(mcp.Options{
		Servers: servers, Root: a.Root, Env: a.ChildEnv(), Version: Version, Vision: a.acceptsImages(),
		Interactive: a.Options.HasUser, TestOnly: sample == nil,
		Sample: sample, Logins: a.newLoginStore(), Relay: a.Options.Driver.Relay, Transport: http.DefaultTransport,
		Warn: a.warn, Now: a.Env.Now, Sleep: a.Env.Sleep, TimeoutFactor: a.Env.TimeoutFactor, IsTaken: taken,
		WatchCall: confiner.Watch,
		Confine: func(cmd *program.Cmd, s mcp.Server) error {
			if s.Unconfined {
				err := a.launcher.Unconfine(cmd)
				confiner.RunUnconfined(cmd)
				return err
			}
			_, err := confiner.Helper(ctx, cmd, confine.Helper{Network: true, AnyMode: true, Hide: a.unpinnedPaths(s.Name)})
			return err
		},
	})
}

// MCPServers returns the workspace's MCP servers.
func (a *Extensions) MCPServers() []mcp.Server { return a.mcpServers }

// MCPSkipped returns the skipped MCP servers, and why.
func (a *Extensions) MCPSkipped() []mcp.Status { return a.mcpSkipped }

// MCPStatus returns the states of the session's servers.
func (a *Session) MCPStatus() []mcp.Status {
	if a.kit.mcp == nil {
		return nil
	}
	return a.kit.mcp.Status()
}

// MCPStatus returns the servers' states without a session: it starts none.
func (a *Extensions) MCPStatus() (all []mcp.Status) {
	for _, s := range a.mcpServers {
		state := mcp.Waiting
		if s.Disabled {
			state = mcp.Disabled
		}
		all = append(all, mcp.Status{Server: s, State: state})
	}
	return all
}

// TryMCP starts an MCP server, asks for its tools, and stops it.
func (a *Workspace) TryMCP(ctx context.Context, s mcp.Server) (mcp.Status, error) {
	_, confiner, done, err := a.NewJudge()
	if err != nil {
		return mcp.Status{}, err
	}
	s.Disabled = false
	h := a.newMCPHost(ctx, []mcp.Server{s}, confiner, nil, nil)
	h.WaitReady(ctx, mcpTestTimeout)
	status := h.Status()[0]
	return status, errors.Join(h.Close(), done())
}

// The files with MCP servers.
const (
	MCPUser    = "user"    // the user's own settings
	MCPProject = "project" // the project's .mcp.json, for everyone who works there
)

// ChangeMCP adds an MCP server to a file, or removes it if settings are
// nil, and leaves the rest of the file unchanged. It returns the file.
func (a *Site) ChangeMCP(scope, name string, settings json.RawMessage) (file string, err error) {
	file = filepath.Join(a.Home, "config.json")
	read := func() ([]byte, error) { return repofile.ReadOwn(file, maxMCPFile) }
	mode := fs.FileMode(0o600)
	if scope == MCPProject {
		file, mode = filepath.Join(a.Project, mcpFile), 0o644
		read = func() ([]byte, error) { return repofile.NewRoot(a.Project).Read(mcpFile, maxMCPFile) }
	} else if a.Home == "" {
		return "", inputErrorf("no folder for your settings: set HOME or CODER_HOME")
	}
	err = updateText(file, mode, read, func(text []byte) (now []byte, err error) {
		found := true
		if settings != nil {
			now, err = config.SetValue(text, config.EntryKey("mcpServers", name), settings)
		} else {
			now, found, err = config.RemoveServer(text, name)
		}
		switch {
		case err != nil:
			return nil, message.Errorf("%s: %w", file, err)
		case !found:
			return nil, message.Errorf("no MCP server %s in %s", singleLine(name), file)
		}
		return now, nil
	})
	if err != nil {
		return file, inputErrorf("%v", err)
	}
	return file, nil
}

// lateMCPTools returns a function that adds the tools of MCP servers to a turn's. It starts
// the servers with the first request. A non-interactive run waits for them once.
func (a *Session) lateMCPTools() func(context.Context, tool.Set, []chat.ToolCall) tool.Set {
	t := a.kit
	if t.mcp == nil {
		return nil
	}
	return func(ctx context.Context, set tool.Set, wanted []chat.ToolCall) tool.Set {
		t.mcp.Start()
		for _, call := range wanted { // from a turn that another process began
			if _, there := set.Lookup(call.Name); !there && strings.HasPrefix(call.Name, "mcp__") {
				t.mcp.WaitReady(ctx, mcpStartTimeout*time.Duration(max(1, a.Env.TimeoutFactor)))
				break
			}
		}
		if !a.Options.HasUser {
			t.mcpWaitOnce.Do(func() { t.mcp.WaitReady(ctx, mcpStartTimeout*time.Duration(max(1, a.Env.TimeoutFactor))) })
		}
		more, generation := t.mcp.Tools()
		if generation == set.Generation() {
			return set
		}
		return set.WithTools(generation, more...)
	}
}

// mcpPrompts are the prompts of MCP servers.
type mcpPrompts struct{ host *mcp.Host }

// List returns the known prompts, as commands.
func (p mcpPrompts) List() (all []orchestrator.Command) {
	for _, one := range p.host.Prompts() {
		all = append(all, orchestrator.Command{Name: one.Name, Args: one.Usage(), Help: orchestrator.Title(one.Description),
			IsCustom: true})
	}
	return all
}

// Find waits for a prompt's server.
func (p mcpPrompts) Find(ctx context.Context, name string) (func(context.Context, string) (string, error), bool) {
	one, ok := p.host.FindPrompt(ctx, name)
	return one.Render, ok
}

// mcpResources returns the resources of MCP servers.
func mcpResources(h *mcp.Host) *orchestrator.ResourceReader {
	set, err := tool.NewSet(h.ResourceReader())
	if err != nil {
		panic(err) // a single tool cannot conflict
	}
	return &orchestrator.ResourceReader{Tools: set, Tool: mcp.ResourceTool,
		ReadArgs: func(name string) (json.RawMessage, bool) {
			args, ok := h.ParseResource(name)
			return jsonx.MustMarshal(args), ok
		}}
}

// CompleteResources returns the names of MCP servers' resources that begin with word.
func (a *Session) CompleteResources(word string) (names []string) {
	host := a.kit.mcp
	if host == nil {
		return nil
	}
	for _, s := range a.mcpServers {
		if strings.HasPrefix(word, s.Name+":") {
			host.Start()
		} else if strings.HasPrefix(s.Name+":", word) && word != "" && !s.Disabled {
			names = append(names, s.Name+":")
		}
	}
	for _, r := range host.Resources() {
		if name := r.Server + ":" + r.URI; strings.HasPrefix(name, word) && strings.Contains(word, ":") {
			names = append(names, name)
		}
	}
	return names
}

// runSampling runs a request to the model for an MCP server.
func (a *Session) runSampling(ctx context.Context, s mcp.SampleRequest) (said mcp.SampleResult, err error) {
	said.Model = a.ModelName()
	spend := func(model string, u chat.Usage) {
		said.Costs = append(said.Costs, event.Spent{Model: cmp.Or(model, said.Model), Usage: u,
			Reason: event.UsageForMCPServer})
	}
	req := provider.Request{Model: said.Model, System: s.System, Messages: s.Messages, MaxTokens: s.MaxTokens}
	reply, err := provider.Collect(a.live.Stream(ctx, req), func(d provider.Delta) error {
		if d, ok := d.(provider.Spent); ok {
			spend(d.Model, d.Usage)
		}
		return nil
	})
	if reply.Usage != nil {
		spend(reply.Model, *reply.Usage)
	}
	said.Text, said.Truncated = reply.Message.Text(), reply.Stop.IsTruncated()
	return said, err
}

// allTools returns a session's tools, with those of running MCP servers.
func (t *toolkit) allTools() tool.Set {
	if t.mcp == nil {
		return t.baseTools
	}
	more, generation := t.mcp.Tools()
	return t.baseTools.WithTools(generation, more...)
}

// mcpSecrets returns the secrets in the settings of MCP servers.
func (a *Extensions) mcpSecrets() (keys []string) {
	for _, s := range a.mcpServers {
		for _, given := range []map[string]string{s.Env, s.Headers} {
			for name, value := range given {
				if secret.IsSecretVariable(name, value) || strings.EqualFold(name, "Authorization") {
					keys = append(keys, value[strings.LastIndexByte(value, ' ')+1:])
				}
			}
		}
	}
	return slices.DeleteFunc(keys, func(key string) bool { return len(key) < 8 })
}
