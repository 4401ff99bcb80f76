package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/app"
	"coder/internal/authored/plugin"
	"coder/internal/core/display"
	"coder/internal/core/sanitize"
	"coder/internal/slash"
	"coder/internal/ui/term/ink"
)

// pluginVerbs lists the commands of coder plugin.
var pluginVerbs = []string{"add", "list", "update", "remove", "marketplace"}

// runPlugin manages the list of plugins.
func (inv *invocation) runPlugin(ctx context.Context) error {
	if len(inv.flags.args) == 0 {
		return usagef("coder plugin takes add, list, update, remove or marketplace")
	}
	what, rest := inv.flags.args[0], inv.flags.args[1:]
	a, err := inv.newApp(func(string) {}) // problems are shown here
	if err != nil {
		return err
	}
	switch {
	case what == "add" && len(rest) == 1:
		return inv.pluginAdd(ctx, a, rest[0])
	case what == "add":
		return usagef("coder plugin add needs one plugin: coder plugin add PATH|OWNER/REPO[@REF]|URL|NAME@MARKETPLACE")
	case what == "list" && len(rest) == 0:
		return inv.pluginList(a)
	case what == "list":
		return usagef("coder %s takes no arguments", "plugin list")
	case what == "remove" && len(rest) == 1:
		return inv.pluginRemove(a, rest[0])
	case what == "update" && len(rest) <= 1:
		return inv.pluginUpdate(ctx, a, strings.Join(rest, ""))
	case what == "marketplace":
		return inv.pluginMarket(ctx, a, rest)
	case what == "remove":
		return usagef("coder plugin remove needs the name of a plugin")
	}
	return usagef("unknown command: coder plugin %s; use add, list, update, remove or marketplace", what)
}

// pluginAdd finds a plugin and adds it if the person wants that.
func (inv *invocation) pluginAdd(ctx context.Context, a *app.Workspace, named string) (err error) {
	dir, from, err := a.FindPlugin(ctx, named)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil { // nothing of it stays
			err = errors.Join(err, a.Dropped(from, dir))
		}
	}()
	return inv.pluginAgree(ctx, a, dir, named, from)
}

// pluginAgree shows all that a plugin brings, and adds it if the person wants that.
func (inv *invocation) pluginAgree(ctx context.Context, a *app.Workspace, dir, named string, from plugin.Origin) error {
	book := a.PluginBook()
	p, held, err := book.Look(dir)
	var c app.PluginContents
	if err == nil {
		c, err = a.Contents(p)
	}
	if err != nil {
		return inputf("%s", oneLine(err.Error()))
	}
	lines := inv.pluginLines(c)
	if from.Commit != "" {
		lines = append(lines, inv.words.T("from %s, commit %s", oneLine(from.Source), from.Commit))
	}
	if overlap(a.Root, p.Dir) {
		lines = append(lines, inv.words.T("it shares files with this workspace: commands cannot write them while it is added, and if you or the model change one, the plugin is off until you add it again"))
	}
	if err := inv.tell(lines...); err != nil {
		return err
	}
	if !inv.flags.yes {
		ask := inv.asker(ctx)
		if ask == nil {
			return inputf("nothing was added; coder plugin add --yes %s adds it", oneLine(named))
		}
		yes, err := ask.confirm(ctx, inv.words.T("Add it? Its hooks and servers will run, and its text goes to the model. [y/N] "), false)
		if err != nil {
			return err
		}
		if !yes {
			return inputf("nothing was added")
		}
	}
	old, _ := book.Load() // what is wrong with others is no matter here
	if err := book.Add(p, held, from); err != nil {
		return inputf("%v", err)
	}
	for _, was := range old {
		if was.Name == p.Name && was.Dir != p.Dir {
			if err := a.Dropped(was.Origin, was.Dir); err != nil {
				return err
			}
		}
	}
	return inv.tell(inv.words.T("added: %s, as its folder is now; if that changes, the plugin is off until you add it again", p.Name))
}

// overlap reports whether one of two folders contains the other.
func overlap(root, dir string) bool {
	if real, err := filepath.EvalSymlinks(root); err == nil {
		root = real
	}
	in := func(a, b string) bool {
		rel, err := filepath.Rel(a, b)
		return err == nil && filepath.IsLocal(rel)
	}
	return in(root, dir) || in(dir, root)
}

// pluginLines lists a plugin's contents in full: cutting them could hide something.
func (inv *invocation) pluginLines(c app.PluginContents) (lines []string) {
	whole := func(s string) string { return sanitize.Line(s, 0) }
	lines = append(lines, inv.words.T("plugin %s", strings.TrimSpace(c.Name+" "+oneLine(c.Version))))
	if c.Description != "" {
		lines = append(lines, "  "+oneLine(c.Description))
	}
	lines = append(lines, "  "+whole(c.Dir))
	for _, part := range []struct {
		title, mark string
		items       []slash.Item
	}{{inv.words.T("commands:"), "/", c.Commands}, {inv.words.T("skills:"), "", c.Skills}, {inv.words.T("agents:"), "", c.Agents}, {inv.words.T("output styles:"), "", c.Styles}} {
		if len(part.items) > 0 {
			lines = append(lines, part.title)
		}
		for _, item := range part.items {
			lines = append(lines, fmt.Sprintf("  %s%s  %s", part.mark, oneLine(item.Name), oneLine(item.About)))
		}
	}
	lines = append(lines, inv.lines(app.Runs(c.Hooks, c.Servers))...)
	if len(c.LSP) > 0 {
		lines = append(lines, inv.words.T("language servers for trusted folders:"))
	}
	for _, s := range c.LSP {
		lines = append(lines, "  "+whole(s))
	}
	if len(c.Problems) > 0 {
		lines = append(lines, inv.words.T("not used, or not used as written:"))
	}
	for _, problem := range c.Problems {
		lines = append(lines, "  "+inv.words.Said(oneLine(problem)))
	}
	return lines
}

// lines returns rows of one cell each, in the user's language.
func (inv *invocation) lines(rows [][]display.Cell) []string {
	return inv.tableLines(display.Table{Rows: rows})
}

// tableLines are the lines of a table, in the person's language.
func (inv *invocation) tableLines(t display.Table) (lines []string) {
	for _, line := range t.Lines(inv.words.Said, ink.Width) {
		lines = append(lines, strings.TrimRight(line.String(ink.Width), " "))
	}
	return lines
}

// pluginRow is a plugin in JSON output.
type pluginRow struct {
	Name        string      `json:"name"`
	Version     string      `json:"version,omitempty"`
	Description string      `json:"description,omitempty"`
	Path        string      `json:"path"`
	State       string      `json:"state"` // on or off
	Why         string      `json:"why,omitempty"`
	Commands    []string    `json:"commands,omitempty"`
	Skills      []string    `json:"skills,omitempty"`
	Agents      []string    `json:"agents,omitempty"`
	Styles      []string    `json:"outputStyles,omitempty"`
	Hooks       []pluginRun `json:"hooks,omitempty"`
	Servers     []pluginRun `json:"mcpServers,omitempty"`
}

// pluginRun is a part of a plugin that runs: on which event, or under which name.
type pluginRun struct {
	On      string `json:"on,omitempty"`
	Matcher string `json:"matcher,omitempty"`
	Name    string `json:"name,omitempty"`
	Runs    string `json:"runs"`
}

// pluginList lists the plugins with their status.
func (inv *invocation) pluginList(a *app.Workspace) error {
	added, err := a.PluginBook().Load()
	if err != nil {
		return inputf("%v", err)
	}
	rows := []pluginRow{}
	t := display.Table{Head: display.Words("plugin", "version", "state", "folder")}
	for _, one := range added {
		row := pluginRow{Name: one.Name, Version: one.Version, Description: one.Description, Path: one.Dir, State: "on"}
		c, err := a.Contents(one.Plugin)
		if one.Err != nil {
			err = one.Err
		}
		if err != nil {
			row.State, row.Why = "off", err.Error()
			if !inv.flags.json {
				inv.warn(app.PluginOff(one.Name, one.Dir, err))
			}
		}
		row.take(c)
		rows = append(rows, row)
		t.Rows = append(t.Rows, []display.Cell{{Text: one.Name}, {Text: oneLine(one.Version)}, {Text: row.State, Words: true}, {Text: oneLine(one.Dir)}})
	}
	switch {
	case inv.flags.json:
		return inv.printJSON(rows)
	case len(rows) == 0:
		return inv.tell(inv.words.T("no plugins; coder plugin add PATH adds one"))
	}
	return inv.show(t)
}

// take adds a plugin's contents.
func (r *pluginRow) take(c app.PluginContents) {
	for _, part := range []struct {
		into  *[]string
		items []slash.Item
	}{{&r.Commands, c.Commands}, {&r.Skills, c.Skills}, {&r.Agents, c.Agents}, {&r.Styles, c.Styles}} {
		for _, item := range part.items {
			*part.into = append(*part.into, item.Name)
		}
	}
	for _, h := range c.Hooks {
		r.Hooks = append(r.Hooks, pluginRun{On: string(h.Event), Matcher: h.Matcher, Runs: strings.Join(append([]string{h.Command}, h.Args...), " ")})
	}
	for _, s := range c.Servers {
		r.Servers = append(r.Servers, pluginRun{Name: s.Name, Runs: s.Where()})
	}
}

// pluginRemove forgets a plugin. What was fetched for it goes.
func (inv *invocation) pluginRemove(a *app.Workspace, name string) error {
	added, _ := a.PluginBook().Load() // what is wrong with it is no matter now
	i := slices.IndexFunc(added, func(p plugin.Added) bool { return strings.EqualFold(p.Name, name) })
	if err := a.PluginBook().Remove(name); err != nil {
		return inputf("%v", err)
	}
	if i >= 0 && added[i].Origin.Source != "" {
		if err := a.Dropped(added[i].Origin, added[i].Dir); err != nil {
			return err
		}
		return inv.tell(inv.words.T("removed: %s", name))
	}
	return inv.tell(inv.words.T("removed: %s; its folder is unchanged", name))
}

// pluginUpdate fetches plugins again, shows the difference, and uses it if the person wants that.
func (inv *invocation) pluginUpdate(ctx context.Context, a *app.Workspace, name string) error {
	added, err := a.PluginBook().Load()
	if err != nil {
		return inputf("%v", err)
	}
	if name != "" {
		if added = slices.DeleteFunc(added, func(p plugin.Added) bool { return !strings.EqualFold(p.Name, name) }); len(added) == 0 {
			return inputf("unknown plugin %q; coder plugin list shows the plugins", name)
		}
	}
	for _, one := range added {
		if one.Origin.Source == "" {
			if err := inv.tell(inv.words.T("%s is a folder of yours: coder plugin add %s takes it as it is now", one.Name, oneLine(one.Dir))); err != nil {
				return err
			}
			continue
		}
		dir, from, err := a.RefetchPlugin(ctx, one.Origin)
		if err != nil {
			return err
		}
		if from.Commit == one.Origin.Commit && one.Err == nil {
			if err := inv.tell(inv.words.T("%s is up to date", one.Name)); err != nil {
				return err
			}
			continue
		}
		if err := inv.tell(strings.Split(sanitize.Text(app.FolderDiff(one.Dir, dir)), "\n")...); err != nil {
			return err
		}
		if err = inv.pluginAgree(ctx, a, dir, one.Name, from); err != nil {
			return errors.Join(err, a.Dropped(from, dir))
		}
	}
	return nil
}

// pluginMarket adds, lists and searches marketplaces.
func (inv *invocation) pluginMarket(ctx context.Context, a *app.Workspace, args []string) error {
	if len(args) == 2 && args[0] == "add" {
		name, offers, err := a.AddMarket(ctx, args[1])
		if err != nil {
			return err
		}
		return inv.tell(inv.words.T("added the marketplace %s with %d plugins; coder plugin marketplace search lists them", name, len(offers)))
	}
	if len(args) == 1 && args[0] == "list" {
		markets, err := a.Markets()
		if err != nil {
			return inputf("%v", err)
		}
		t := display.Table{Head: display.Words("marketplace", "from", "folder")}
		for _, name := range slices.Sorted(maps.Keys(markets)) {
			t.Rows = append(t.Rows, display.Data(name, oneLine(markets[name].Source), oneLine(markets[name].Dir)))
		}
		return inv.show(t)
	}
	if len(args) == 0 || args[0] != "search" {
		return usagef("coder plugin marketplace takes add PATH|OWNER/REPO|URL, list, or search [WORDS]")
	}
	offers, problems := a.Offers()
	for _, problem := range problems {
		inv.warn(oneLine(problem))
	}
	t := display.Table{Head: display.Words("plugin", "version", "about")}
	for _, o := range offers {
		text := strings.ToLower(o.Name + " " + o.Description)
		if slices.ContainsFunc(args[1:], func(w string) bool { return !strings.Contains(text, strings.ToLower(w)) }) {
			continue
		}
		t.Rows = append(t.Rows, display.Data(o.Name, oneLine(o.Version), oneLine(o.Description)))
	}
	return inv.show(t)
}
