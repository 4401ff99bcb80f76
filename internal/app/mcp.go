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
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"coder/internal/agent/orchestrator"
	"coder/internal/config"
	"coder/internal/core/chat"
	"coder/internal/core/event"
	"coder/internal/core/jsonx"
	"coder/internal/core/secret"
	"coder/internal/host/atomicfile"
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
	// mcpPatience is how long a non-interactive run waits for MCP servers before its first request.
	mcpPatience = 10 * time.Second
	// mcpTestPatience is how long coder waits for a server in a test.
	mcpTestPatience = 90 * time.Second
)

// readMCP reads the MCP servers in order of precedence: the user's settings, the command line,
// the driver, plugins, and a trusted project. The first server gets its name, and all names
// similar to it, even if it is unusable: so no other server can replace the one that rules mean.
func (a *Extensions) readMCP() error {
	r := mcpReader{a, make(map[string]string)}
	if !a.Options.StrictMCP {
		r.configured(false)
	}
	if err := r.given(); err != nil {
		return err
	}
	for _, name := range a.Options.Driver.Servers {
		r.take(mcp.Server{Name: name, Type: mcp.Relay, From: "driver"}, nil)
	}
	if a.Options.StrictMCP {
		return nil
	}
	for _, p := range a.plugins {
		for _, s := range p.servers {
			s.From = "plugin " + p.Name
			r.take(s, nil)
		}
	}
	r.configured(true)
	if !a.Options.Bare {
		r.project()
	}
	return nil
}

// mcpReader collects MCP servers from their sources.
type mcpReader struct {
	*Extensions
	taken map[string]string // names by comparison key
}

// take adds a server, if it is usable and its name is free. Otherwise
// it warns that the server is skipped, unless it is switched off.
func (r mcpReader) take(s mcp.Server, err error) {
	other, taken := r.taken[mcp.Key(s.Name)]
	switch {
	case taken && err != nil:
	case taken && other == s.Name:
		err = errors.New("another one with this name takes precedence")
	case taken:
		err = fmt.Errorf("its name is too similar to %s", oneLine(other))
	default:
		r.taken[mcp.Key(s.Name)] = s.Name
		if err == nil {
			err = r.allowsServer(s)
		}
	}
	if err != nil {
		r.mcpLeft = append(r.mcpLeft, mcp.Status{Server: s, State: mcp.LeftOut, Why: oneLine(err.Error())})
		if !s.Disabled {
			r.warn(fmt.Sprintf("the MCP server %s (%s) is skipped: %s", oneLine(s.Name), oneLine(s.From), oneLine(err.Error())))
		}
		return
	}
	if s.Project && (s.TrustHints || s.Unconfined) {
		r.warn(fmt.Sprintf("the MCP server %s comes from a project: only you can set trust_hints and confined", oneLine(s.Name)))
		s.TrustHints, s.Unconfined = false, false
	}
	r.mcpServers = append(r.mcpServers, s)
}

// all adds the servers in one source.
func (r mcpReader) all(servers map[string]json.RawMessage, skipped []config.Skipped, from string, project bool) {
	for _, s := range skipped {
		r.take(mcp.Server{Name: s.Name, From: from, Project: project, Disabled: s.Disabled}, s.Err)
	}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		s, err := mcp.Read(name, servers[name])
		s.From, s.Project = from, project
		r.take(s, err)
	}
}

// configured adds the servers in the settings: the user's, or the project's.
func (r mcpReader) configured(project bool) {
	for _, l := range r.Report.LeftOut {
		if l.Project == project {
			r.take(mcp.Server{Name: l.Name, From: l.Origin.String(), Project: project, Disabled: l.Disabled}, l.Err)
		}
	}
	file := filepath.Join(r.Project, ".coder", "config.json")
	for _, name := range slices.Sorted(maps.Keys(r.Config.MCPServers)) {
		from := r.Report.Origin(config.Entry("mcpServers", name))
		theirs := from.Source == "" || from.Source == file && filepath.Dir(file) != r.Home
		if project == theirs {
			r.all(map[string]json.RawMessage{name: r.Config.MCPServers[name]}, nil, from.String(), project)
		}
	}
}

// given adds the servers from --mcp-config: files, or their
// content. Of servers with the same name, the last counts.
func (r mcpReader) given() error {
	for _, text := range slices.Backward(r.Options.MCPConfig) {
		from := "--mcp-config"
		if !strings.HasPrefix(strings.TrimSpace(text), "{") {
			if from = text; !filepath.IsAbs(text) {
				text = filepath.Join(r.Env.Dir, text)
			}
			file, err := repofile.Named(text, maxMCPFile)
			if err != nil {
				return inputf("read --mcp-config: %v", err)
			}
			text = string(file)
		}
		servers, skipped, err := config.Servers([]byte(text), r.Env.Getenv, nil)
		if err != nil {
			return configf("%s: %v", from, err)
		}
		for name, settings := range servers {
			if _, err := mcp.Read(name, settings); err != nil {
				return configf("%s: mcpServers.%s: %v", from, name, err)
			}
		}
		r.all(servers, skipped, from, false)
	}
	return nil
}

// project adds the servers in the project's own file. The file may use variables, but none
// with a provider's key. In an untrusted folder, it only warns that there are servers.
func (r mcpReader) project() {
	text, err := repofile.Below(r.Project).Read(mcpFile, maxMCPFile)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		r.warn(fmt.Sprintf("%s is ignored: %s", mcpFile, repofile.Why(err)))
		return
	}
	servers, skipped, err := config.Servers(text, r.Env.Getenv, r.withheld)
	if err != nil {
		r.warn(fmt.Sprintf("%s is ignored: %v", mcpFile, err))
		return
	}
	if names := slices.Sorted(maps.Keys(servers)); r.Trusted != trust.Trusted {
		if len(names) > 0 {
			r.warn(fmt.Sprintf("ignored in an untrusted project: the MCP servers of %s: %s", mcpFile, oneLine(strings.Join(names, ", "))))
		}
		return
	}
	r.all(servers, skipped, mcpFile, true)
}

// mcpHost returns the host for a session's MCP servers, or nil if there are none.
func (a *Session) mcpHost(t *toolkit) *mcp.Host {
	if len(a.mcpServers) == 0 {
		return nil
	}
	taken := func(name string) bool { _, taken := t.set.Lookup(name); return taken }
	return a.newMCPHost(t.work, slices.Clone(a.mcpServers), a.confiner, taken, a.sample)
}

// newMCPHost returns a host for MCP servers. Without a session, sample is nil: the host only tries the servers.
func (a *Workspace) newMCPHost(
	ctx context.Context, servers []mcp.Server, confiner *confine.Confiner, taken func(string) bool,
	sample func(context.Context, mcp.Sampling) (mcp.Sampled, error),
) *mcp.Host {
	return mcp.New(mcp.Options{
		Servers: servers, Root: a.Root, Env: a.ChildEnv(), Version: Version, Vision: a.sees(), Attended: a.Options.Attended, Trial: sample == nil,
		Sample: sample, Logins: a.mcpLogins(), Relay: a.Options.Driver.Relay, Transport: http.DefaultTransport, Warn: a.warn, Now: a.Env.Now, Sleep: a.Env.Sleep, Patience: a.Env.Patience, Taken: taken,
		Watch: confiner.Watch,
		Confine: func(cmd *program.Cmd, s mcp.Server) error {
			if s.Unconfined {
				err := a.door.Admit(cmd)
				confiner.Bare(cmd)
				return err
			}
			_, err := confiner.Helper(ctx, cmd, confine.Helper{Network: true, AnyMode: true, Hide: a.unpinned(s.Name)})
			return err
		},
	})
}

// MCPServers returns the workspace's MCP servers.
func (a *Extensions) MCPServers() []mcp.Server { return a.mcpServers }

// MCPLeftOut returns the skipped MCP servers, and why.
func (a *Extensions) MCPLeftOut() []mcp.Status { return a.mcpLeft }

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
			state = mcp.Off
		}
		all = append(all, mcp.Status{Server: s, State: state})
	}
	return all
}

// TryMCP starts an MCP server, asks for its tools, and stops it.
func (a *Workspace) TryMCP(ctx context.Context, s mcp.Server) (mcp.Status, error) {
	_, confiner, done, err := a.Judge()
	if err != nil {
		return mcp.Status{}, err
	}
	s.Disabled = false
	h := a.newMCPHost(ctx, []mcp.Server{s}, confiner, nil, nil)
	h.Settle(ctx, mcpTestPatience)
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
	read := func() ([]byte, error) { return repofile.Own(file, maxMCPFile) }
	mode := fs.FileMode(0o600)
	if scope == MCPProject {
		file, mode = filepath.Join(a.Project, mcpFile), 0o644
		read = func() ([]byte, error) { return repofile.Below(a.Project).Read(mcpFile, maxMCPFile) }
	} else if a.Home == "" {
		return "", inputf("no folder for your settings: set HOME or CODER_HOME")
	}
	text, err := read()
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return file, inputf("%v", err)
	}
	found := true
	if settings != nil {
		text, err = config.Set(text, config.Entry("mcpServers", name), settings)
	} else {
		text, found, err = config.DropServer(text, name)
	}
	switch {
	case err != nil:
		return file, inputf("%s: %v", file, err)
	case !found:
		return file, inputf("no MCP server %s in %s", oneLine(name), file)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return file, inputf("%v", err)
	}
	return file, atomicfile.Write(file, text, mode)
}

// later returns a function that adds the tools of MCP servers to a turn's. It starts
// the servers with the first request. A non-interactive run waits for them once.
func (a *Session) later() func(context.Context, tool.Set, []chat.ToolCall) tool.Set {
	t := a.kit
	if t.mcp == nil {
		return nil
	}
	return func(ctx context.Context, set tool.Set, wanted []chat.ToolCall) tool.Set {
		t.mcp.Start()
		for _, call := range wanted { // from a turn that another process began
			if _, there := set.Lookup(call.Name); !there && strings.HasPrefix(call.Name, "mcp__") {
				t.mcp.Settle(ctx, mcpPatience*time.Duration(max(1, a.Env.Patience)))
				break
			}
		}
		if !a.Options.Attended {
			t.awaited.Do(func() { t.mcp.Settle(ctx, mcpPatience*time.Duration(max(1, a.Env.Patience))) })
		}
		more, generation := t.mcp.Tools()
		if generation == set.Generation() {
			return set
		}
		return set.Beside(generation, more...)
	}
}

// mcpPrompts are the prompts of MCP servers.
type mcpPrompts struct{ host *mcp.Host }

// List returns the known prompts, as commands.
func (p mcpPrompts) List() (all []orchestrator.Command) {
	for _, one := range p.host.Prompts() {
		all = append(all, orchestrator.Command{Name: one.Name, Args: one.Usage(), Help: orchestrator.Title(one.About), Authored: true})
	}
	return all
}

// Find waits for a prompt's server.
func (p mcpPrompts) Find(ctx context.Context, name string) (func(context.Context, string) (string, error), bool) {
	one, ok := p.host.Prompt(ctx, name)
	return one.Write, ok
}

// mcpResources returns the resources of MCP servers.
func mcpResources(h *mcp.Host) *orchestrator.Resources {
	set, err := tool.NewSet(h.ReadResource())
	if err != nil {
		panic(err) // a single tool cannot conflict
	}
	return &orchestrator.Resources{Set: set, Tool: mcp.ResourceTool, Args: func(name string) (json.RawMessage, bool) {
		args, ok := h.Named(name)
		return jsonx.Must(args), ok
	}}
}

// NamedResources returns the names of MCP servers' resources that begin with word.
func (a *Session) NamedResources(word string) (names []string) {
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

// sample runs a request to the model for an MCP server.
func (a *Session) sample(ctx context.Context, s mcp.Sampling) (said mcp.Sampled, err error) {
	said.Model = a.ModelName()
	spend := func(model string, u chat.Usage) {
		said.Spent = append(said.Spent, event.Spent{Model: cmp.Or(model, said.Model), Usage: u, For: event.ForServer})
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
	said.Text, said.Cut = reply.Message.Text(), reply.Stop.Cut()
	return said, err
}

// tools returns a session's tools, with those of running MCP servers.
func (t *toolkit) tools() tool.Set {
	if t.mcp == nil {
		return t.set
	}
	more, generation := t.mcp.Tools()
	return t.set.Beside(generation, more...)
}

// mcpSecrets returns the secrets in the settings of MCP servers.
func (a *Extensions) mcpSecrets() (keys []string) {
	for _, s := range a.mcpServers {
		for _, given := range []map[string]string{s.Env, s.Headers} {
			for name, value := range given {
				if secret.Variable(name, value) || strings.EqualFold(name, "Authorization") {
					keys = append(keys, value[strings.LastIndexByte(value, ' ')+1:])
				}
			}
		}
	}
	return slices.DeleteFunc(keys, func(key string) bool { return len(key) < 8 })
}
