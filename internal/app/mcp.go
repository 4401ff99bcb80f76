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
	// mcpFile is where projects keep MCP servers.
	mcpFile    = ".mcp.json"
	maxMCPFile = 1 << 20
	// mcpPatience is how long a run without a terminal waits for MCP servers
	// before its first request.
	mcpPatience = 10 * time.Second
	// mcpTestPatience is how long a server has that is only tried.
	mcpTestPatience = 90 * time.Second
)

// readMCP reads which MCP servers there are, the strongest first: those of the
// person's settings, those of the command line, those of whoever drives the
// session, those of plugins, and those of a project that is trusted. Whoever
// comes first has the name, and all that are like it, also if it cannot be used:
// so nobody's server stands where rules mean another.
func (a *App) readMCP() error {
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

// mcpReader takes in MCP servers from where they are written.
type mcpReader struct {
	*App
	taken map[string]string // names, by what they are told apart by
}

// take uses a server, if it can be used and its name is free. Otherwise it is said
// that it is left out, unless it is switched off.
func (r mcpReader) take(s mcp.Server, err error) {
	other, taken := r.taken[mcp.Key(s.Name)]
	switch {
	case taken && err != nil:
	case taken && other == s.Name:
		err = errors.New("another of that name takes precedence")
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

// all takes the servers that one source has.
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

// configured takes the servers of the settings: the person's, or the project's.
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

// given takes the servers of --mcp-config: files, or their text itself. The last
// that has a name counts.
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

// project takes the servers of the project's own file. It may name variables,
// but none that holds a key of a provider. In a folder that is not trusted it is
// only told that there are some.
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

// mcpHost runs the MCP servers of a session. Where there are none it is nil.
func (a *App) mcpHost(t *toolkit) *mcp.Host {
	if len(a.mcpServers) == 0 {
		return nil
	}
	a.mcp = a.newMCPHost(t.work, slices.Clone(a.mcpServers), t.confiner, false, func(name string) bool { _, taken := t.set.Lookup(name); return taken })
	return a.mcp
}

func (a *App) newMCPHost(ctx context.Context, servers []mcp.Server, confiner *confine.Confiner, trial bool, taken func(string) bool) *mcp.Host {
	return mcp.New(mcp.Options{
		Servers: servers, Root: a.Root, Env: a.ChildEnv(), Version: Version, Vision: a.sees(), Attended: a.Options.Attended, Trial: trial,
		Sample: a.sample, Logins: a.mcpLogins(), Relay: a.Options.Driver.Relay, Transport: http.DefaultTransport, Warn: a.warn, Now: a.Env.Now, Sleep: a.Env.Sleep, Patience: a.Env.Patience, Taken: taken,
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

// MCPServers are the MCP servers there are here.
func (a *App) MCPServers() []mcp.Server { return a.mcpServers }

// MCPLeftOut are those that are not used, and why.
func (a *App) MCPLeftOut() []mcp.Status { return a.mcpLeft }

// MCPStatus tells how they are. None is started for it.
func (a *App) MCPStatus() (all []mcp.Status) {
	if a.mcp != nil {
		return a.mcp.Status()
	}
	for _, s := range a.mcpServers {
		state := mcp.Waiting
		if s.Disabled {
			state = mcp.Off
		}
		all = append(all, mcp.Status{Server: s, State: state})
	}
	return all
}

// TryMCP starts an MCP server, asks it what it has, and ends it.
func (a *App) TryMCP(ctx context.Context, s mcp.Server) (mcp.Status, error) {
	_, confiner, done, err := a.Judge()
	if err != nil {
		return mcp.Status{}, err
	}
	s.Disabled = false
	h := a.newMCPHost(ctx, []mcp.Server{s}, confiner, true, nil)
	h.Settle(ctx, mcpTestPatience)
	status := h.Status()[0]
	return status, errors.Join(h.Close(), done())
}

// The files that MCP servers are kept in.
const (
	MCPUser    = "user"    // the person's own settings
	MCPProject = "project" // .mcp.json of the project, for whoever works there
)

// ChangeMCP writes an MCP server into a file, or takes it out if settings are
// nil, and leaves the rest of the file as it is. It returns the file.
func (a *App) ChangeMCP(scope, name string, settings json.RawMessage) (file string, err error) {
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

// later adds to the tools of a turn those of MCP servers, which are started with
// the first request. A run without a terminal waits for them, once.
func (a *App) later(t *toolkit) func(context.Context, tool.Set, []chat.ToolCall) tool.Set {
	if t.mcp == nil {
		return nil
	}
	return func(ctx context.Context, set tool.Set, wanted []chat.ToolCall) tool.Set {
		t.mcp.Start()
		for _, call := range wanted { // of a turn that goes on in another process
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

// mcpPrompts are what MCP servers write for the model.
type mcpPrompts struct{ host *mcp.Host }

// List are the prompts that are known, as commands.
func (p mcpPrompts) List() (all []orchestrator.Command) {
	for _, one := range p.host.Prompts() {
		all = append(all, orchestrator.Command{Name: one.Name, Args: one.Usage(), Help: orchestrator.Title(one.About), Authored: true})
	}
	return all
}

// Find waits for the server of a prompt.
func (p mcpPrompts) Find(ctx context.Context, name string) (func(context.Context, string) (string, error), bool) {
	one, ok := p.host.Prompt(ctx, name)
	return one.Write, ok
}

// mcpResources are what MCP servers let messages name.
func mcpResources(h *mcp.Host) *orchestrator.Resources {
	set, err := tool.NewSet(h.ReadResource())
	if err != nil {
		panic(err) // one tool cannot be there twice
	}
	return &orchestrator.Resources{Set: set, Tool: mcp.ResourceTool, Args: func(name string) (json.RawMessage, bool) {
		args, ok := h.Named(name)
		return jsonx.Must(args), ok
	}}
}

// NamedResources are the names of what MCP servers have that go on from a word.
func (a *App) NamedResources(word string) (names []string) {
	if a.mcp == nil {
		return nil
	}
	for _, s := range a.mcpServers {
		if strings.HasPrefix(word, s.Name+":") {
			a.mcp.Start()
		} else if strings.HasPrefix(s.Name+":", word) && word != "" && !s.Disabled {
			names = append(names, s.Name+":")
		}
	}
	for _, r := range a.mcp.Resources() {
		if name := r.Server + ":" + r.URI; strings.HasPrefix(name, word) && strings.Contains(word, ":") {
			names = append(names, name)
		}
	}
	return names
}

// sample has the model answer for an MCP server.
func (a *App) sample(ctx context.Context, s mcp.Sampling) (said mcp.Sampled, err error) {
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

// tools are the tools of a session, with those of MCP servers that are there.
func (t *toolkit) tools() tool.Set {
	if t.mcp == nil {
		return t.set
	}
	more, generation := t.mcp.Tools()
	return t.set.Beside(generation, more...)
}

// mcpSecrets are what MCP servers are given and nobody is to see.
func (a *App) mcpSecrets() (keys []string) {
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
