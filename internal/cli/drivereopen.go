package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"coder/internal/app"
	"coder/internal/config"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/policy/rule"
)

// programSettings are what the program has set during the session, and what holds when the session is reopened.
type programSettings struct {
	model, effort *string
	servers       map[string]json.RawMessage

	mu          sync.Mutex // guards the fields below
	allow, deny []rule.Spec
}

func (p *programSettings) add(allow, deny []rule.Spec) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.allow, p.deny = append(p.allow, allow...), append(p.deny, deny...)
}

// reopen closes the session and opens it with other options: coder reads settings, plugins, agents, hooks and
// servers again. If the session does not open so, it opens as before.
func (d *drivenSession) reopen(ctx context.Context, change func(*app.Options)) error {
	if _, waiting := d.State(); waiting > 0 || d.busy.Load() {
		return errors.New("a turn is running; interrupt it, or wait for its result")
	}
	d.reopening.Store(true)
	defer d.reopening.Store(false)
	d.Finish()
	err := <-d.done
	d.done = nil
	done := d.Close(ctx)
	if err = errors.Join(err, d.invocation.recordClose(done)); err != nil {
		return err
	}
	d.invocation.flags.session = app.SessionChoice{ResumeID: done.ID}
	if _, err := d.app.Store().CheckSession(ctx, done.ID); err != nil { // nothing was saved
		d.invocation.flags.session = app.SessionChoice{NewID: done.ID}
	}
	mode, _ := d.app.ModeState.Current()
	before := d.invocation.flags.Options
	change(&d.invocation.flags.Options)
	if err = d.openSession(ctx, nil); err != nil {
		d.invocation.flags.Options = before
		return errors.Join(err, d.openSession(ctx, nil))
	}
	if now, _ := d.app.ModeState.Current(); now.Name != mode.Name {
		if err := d.Session().ChangeSettings(ctx, mode.Name, d.out); err != nil {
			return err
		}
	}
	if d.set.model != nil {
		d.app.UseModel(*d.set.model)
	}
	if d.set.effort != nil {
		d.app.UseEffort(*d.set.effort)
	}
	d.set.mu.Lock()
	defer d.set.mu.Unlock()
	d.Inside().AddRules(d.set.allow, d.set.deny)
	return nil
}

// setServers replaces the MCP servers that the program added during the session.
func (d *drivenSession) setServers(ctx context.Context, servers map[string]json.RawMessage) (any, error) {
	result := struct {
		Added   []string          `json:"added"`
		Removed []string          `json:"removed"`
		Errors  map[string]string `json:"errors"`
	}{[]string{}, []string{}, map[string]string{}}
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		if !bytes.Equal(servers[name], d.set.servers[name]) {
			result.Added = append(result.Added, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.set.servers)) {
		if _, stays := servers[name]; !stays {
			result.Removed = append(result.Removed, name)
		}
	}
	if len(result.Added)+len(result.Removed) == 0 {
		return result, nil
	}
	was := d.set.servers
	err := d.reopen(ctx, func(o *app.Options) {
		with, without := splitServers(servers), splitServers(was)
		o.Driver.Servers = slices.DeleteFunc(slices.Clone(o.Driver.Servers),
			func(name string) bool { return slices.Contains(without.inside, name) })
		o.Driver.Servers = append(o.Driver.Servers, with.inside...)
		o.MCPConfig = slices.DeleteFunc(slices.Clone(o.MCPConfig), func(text string) bool { return text == without.config })
		if with.config != "" {
			o.MCPConfig = append(o.MCPConfig, with.config)
		}
	})
	if err != nil {
		return nil, err
	}
	d.set.servers = servers
	for _, s := range d.app.MCPSkipped() {
		if _, asked := servers[s.Name]; asked {
			result.Errors[s.Name] = s.Reason
		}
	}
	return result, nil
}

// splitServers separates servers inside the program from those that coder starts or reaches.
func splitServers(servers map[string]json.RawMessage) (split struct {
	inside []string
	config string
}) {
	others := make(map[string]json.RawMessage)
	for _, name := range slices.Sorted(maps.Keys(servers)) {
		var s struct{ Type string }
		if _ = json.Unmarshal(servers[name], &s); s.Type == "sdk" {
			split.inside = append(split.inside, name)
		} else {
			others[name] = servers[name]
		}
	}
	if len(others) > 0 {
		split.config = string(jsonx.MustMarshal(map[string]any{"mcpServers": others}))
	}
	return split
}

// reloadPlugins reads the plugins again, and those in folders that the program names.
func (d *drivenSession) reloadPlugins(ctx context.Context, dirs []string) (any, error) {
	for _, dir := range dirs {
		if !filepath.IsAbs(dir) {
			return nil, message.Errorf("the path of a plugin must be a full path: %s", singleLine(dir))
		}
	}
	err := d.reopen(ctx, func(o *app.Options) { o.PluginDirs = slices.Concat(o.PluginDirs, dirs) })
	if err != nil {
		return nil, err
	}
	commands, agents := d.named()
	return map[string]any{
		"commands": commands, "agents": agents, "plugins": d.app.Plugins(), "mcpServers": d.servers(), "error_count": 0,
	}, nil
}

// settings returns the settings in use, secrets masked, and the source of each that is no default.
func (d *drivenSession) settings() any {
	effective, sources := map[string]any{}, map[string]string{}
	for _, r := range d.app.SettingRows() {
		at := effective
		words := config.KeyWords(r.Key)
		for _, w := range words[:len(words)-1] {
			next, ok := at[w].(map[string]any)
			if !ok {
				next = make(map[string]any)
				at[w] = next
			}
			at = next
		}
		at[words[len(words)-1]] = json.RawMessage(r.Value)
		if r.Origin.Source != "" {
			sources[r.Key] = r.DisplayOrigin()
		}
	}
	return map[string]any{"effective": effective, "sources": sources,
		"applied": map[string]string{"model": d.app.ModelName()}}
}

// servers returns the state of the MCP servers.
func (d *drivenSession) servers() []serverLine {
	all := []serverLine{}
	states := streamServers(d.Inside().MCPStatus())
	for i, s := range d.Inside().MCPStatus() {
		line := serverLine{Name: s.Name, Status: states[i].Status, Error: s.Reason, Tools: []toolLine{}}
		for _, t := range s.Tools {
			line.Tools = append(line.Tools, toolLine{t.Name, t.Description})
		}
		all = append(all, line)
	}
	return all
}

// namedLine is a command or an agent.
type namedLine struct {
	Name  string `json:"name"`
	About string `json:"description"`
	Hint  string `json:"argumentHint"`
}

// named returns the session's commands and agents.
func (d *drivenSession) named() (commands, agents []namedLine) {
	commands, agents = []namedLine{}, []namedLine{}
	for _, c := range d.Session().Commands() {
		commands = append(commands, namedLine{c.Name, c.Help, c.Args})
	}
	for i, name := range d.agentNames {
		agents = append(agents, namedLine{Name: name, About: d.agentDescriptions[i]})
	}
	return commands, agents
}
