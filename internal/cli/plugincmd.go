package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
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
		return usageErrorf("coder plugin takes add, list, update, remove or marketplace")
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
		return usageErrorf("coder plugin add needs one plugin: coder plugin add PATH|OWNER/REPO[@REF]|URL|NAME@MARKETPLACE")
	case what == "list" && len(rest) == 0:
		return inv.pluginList(a)
	case what == "list":
		return usageErrorf("coder %s takes no arguments", "plugin list")
	case what == "remove" && len(rest) == 1:
		return inv.pluginRemove(a, rest[0])
	case what == "update" && len(rest) <= 1:
		return inv.pluginUpdate(ctx, a, strings.Join(rest, ""))
	case what == "marketplace":
		return inv.pluginMarket(ctx, a, rest)
	case what == "remove":
		return usageErrorf("coder plugin remove needs the name of a plugin")
	}
	return usageErrorf("unknown command: coder plugin %s; use add, list, update, remove or marketplace", what)
}

// pluginAdd finds a plugin and adds it if the person wants that.
func (inv *invocation) pluginAdd(ctx context.Context, a *app.Workspace, named string) (err error) {
	dir, from, err := a.FindPlugin(ctx, named)
	if err != nil {
		return err
	}
	defer func() {
		if _, there := os.Stat(named); err != nil && there != nil { // nothing of what was fetched stays
			err = errors.Join(err, a.RemoveFetchedPlugin(dir))
		}
	}()
	return inv.pluginConfirmAdd(ctx, a, dir, named, from)
}

// pluginConfirmAdd shows all that a plugin brings, and adds it if the person wants that.
func (inv *invocation) pluginConfirmAdd(ctx context.Context, a *app.Workspace, dir, named string,
	from plugin.Origin) error {
	book := a.PluginBook()
	p, held, err := book.Inspect(dir)
	var c app.PluginContents
	if err == nil {
		c, err = a.PluginContents(p)
	}
	if err != nil {
		return inputErrorf("%s", singleLine(err.Error()))
	}
	lines := inv.pluginLines(c)
	if from.Commit != "" {
		lines = append(lines, inv.printer.T("from %s, commit %s", singleLine(from.Source), from.Commit))
	}
	if dirsOverlap(a.Root, p.Dir) {
		lines = append(lines,
			inv.printer.T("it shares files with this workspace: commands cannot write them while it is added, and if you or the model change one, the plugin is off until you add it again"))
	}
	if err := inv.printWrapped(lines...); err != nil {
		return err
	}
	if !inv.flags.yes {
		ask := inv.terminalConsole(ctx)
		if ask == nil {
			return inputErrorf("nothing was added; coder plugin add --yes %s adds it", singleLine(named))
		}
		yes, err := ask.confirm(ctx,
			inv.printer.T("Add it? Its hooks and servers will run, and its text goes to the model. [y/N] "), false)
		if err != nil {
			return err
		}
		if !yes {
			return inputErrorf("nothing was added")
		}
	}
	old, _ := book.Load() // what is wrong with others is no matter here
	if err := book.Add(p, held, from); err != nil {
		return inputErrorf("%v", err)
	}
	for _, was := range old {
		if was.Name == p.Name && was.Dir != p.Dir {
			if err := a.RemoveFetchedPlugin(was.Dir); err != nil {
				return err
			}
		}
	}
	return inv.printWrapped(inv.printer.T("added: %s, as its folder is now; if that changes, the plugin is off until you add it again", p.Name))
}

// dirsOverlap reports whether one of two folders contains the other.
func dirsOverlap(root, dir string) bool {
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
	lines = append(lines, inv.printer.T("plugin %s", strings.TrimSpace(c.Name+" "+singleLine(c.Version))))
	if c.Description != "" {
		lines = append(lines, "  "+singleLine(c.Description))
	}
	lines = append(lines, "  "+whole(c.Dir))
	for _, part := range []struct {
		title, mark string
		items       []slash.Item
	}{{inv.printer.T("commands:"), "/", c.Commands}, {inv.printer.T("skills:"), "", c.Skills},
		{inv.printer.T("agents:"), "", c.Agents}, {inv.printer.T("output styles:"), "", c.Styles}} {
		if len(part.items) > 0 {
			lines = append(lines, part.title)
		}
		for _, item := range part.items {
			lines = append(lines, fmt.Sprintf("  %s%s  %s", part.mark, singleLine(item.Name), singleLine(item.Description)))
		}
	}
	lines = append(lines, inv.cellLines(app.DescribeRuns(c.Hooks, c.Servers))...)
	if len(c.LSP) > 0 {
		lines = append(lines, inv.printer.T("language servers for trusted folders:"))
	}
	for _, s := range c.LSP {
		lines = append(lines, "  "+whole(s))
	}
	if len(c.Problems) > 0 {
		lines = append(lines, inv.printer.T("not used, or not used as written:"))
	}
	for _, problem := range c.Problems {
		lines = append(lines, "  "+inv.printer.TranslateText(singleLine(problem)))
	}
	return lines
}

// cellLines returns rows of one cell each, in the user's language.
func (inv *invocation) cellLines(rows [][]display.Cell) []string {
	return inv.tableLines(display.Table{Rows: rows})
}

// tableLines are the lines of a table, in the person's language.
func (inv *invocation) tableLines(t display.Table) (lines []string) {
	for _, line := range t.Lines(inv.printer.TranslateText, ink.Width) {
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
	Reason      string      `json:"why,omitempty"`
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
		return inputErrorf("%v", err)
	}
	rows := []pluginRow{}
	t := display.Table{Header: display.TextCells("plugin", "version", "state", "folder")}
	for _, one := range added {
		row := pluginRow{Name: one.Name, Version: one.Version, Description: one.Description, Path: one.Dir, State: "on"}
		c, err := a.PluginContents(one.Plugin)
		if one.Err != nil {
			err = one.Err
		}
		if err != nil {
			row.State, row.Reason = "off", err.Error()
			if !inv.flags.json {
				inv.warn(app.PluginOffNotice(one.Name, one.Dir, err))
			}
		}
		row.addContents(c)
		rows = append(rows, row)
		t.Rows = append(t.Rows, []display.Cell{{Text: one.Name}, {Text: singleLine(one.Version)},
			{Text: row.State, Words: true}, {Text: singleLine(one.Dir)}})
	}
	unused, _ := a.UnusedPluginDirs() // only a hint
	for _, dir := range unused {
		if !inv.flags.json {
			inv.warn(fmt.Sprintf("%s was fetched for a plugin that is not added here; you can delete it", singleLine(dir)))
		}
	}
	switch {
	case inv.flags.json:
		return inv.printJSON(rows)
	case len(rows) == 0:
		return inv.printWrapped(inv.printer.T("no plugins; coder plugin add PATH adds one"))
	}
	return inv.printBlocks(t)
}

// addContents adds a plugin's contents.
func (r *pluginRow) addContents(c app.PluginContents) {
	for _, part := range []struct {
		into  *[]string
		items []slash.Item
	}{{&r.Commands, c.Commands}, {&r.Skills, c.Skills}, {&r.Agents, c.Agents}, {&r.Styles, c.Styles}} {
		for _, item := range part.items {
			*part.into = append(*part.into, item.Name)
		}
	}
	for _, h := range c.Hooks {
		r.Hooks = append(r.Hooks, pluginRun{On: string(h.Event), Matcher: h.Matcher,
			Runs: strings.Join(append([]string{h.Command}, h.Args...), " ")})
	}
	for _, s := range c.Servers {
		r.Servers = append(r.Servers, pluginRun{Name: s.Name, Runs: s.DisplayAddress()})
	}
}

// pluginRemove forgets a plugin. What was fetched for it goes.
func (inv *invocation) pluginRemove(a *app.Workspace, name string) error {
	added, _ := a.PluginBook().Load() // what is wrong with it is no matter now
	i := slices.IndexFunc(added, func(p plugin.AddedPlugin) bool { return strings.EqualFold(p.Name, name) })
	if err := a.PluginBook().Remove(name); err != nil {
		return inputErrorf("%v", err)
	}
	if i >= 0 {
		if err := a.RemoveFetchedPlugin(added[i].Dir); err != nil {
			return err
		}
		if _, err := os.Stat(added[i].Dir); errors.Is(err, fs.ErrNotExist) {
			return inv.printWrapped(inv.printer.T("removed: %s", name))
		}
	}
	return inv.printWrapped(inv.printer.T("removed: %s; its folder is unchanged", name))
}

// pluginUpdate fetches plugins again, shows the difference, and uses it if the person wants that.
func (inv *invocation) pluginUpdate(ctx context.Context, a *app.Workspace, name string) error {
	added, err := a.PluginBook().Load()
	if err != nil {
		return inputErrorf("%v", err)
	}
	if name != "" {
		if added = slices.DeleteFunc(added, func(p plugin.AddedPlugin) bool {
			return !strings.EqualFold(p.Name,
				name)
		}); len(added) == 0 {
			return inputErrorf("unknown plugin %q; coder plugin list shows the plugins", name)
		}
	}
	for _, one := range added {
		if one.Origin.Source == "" {
			if err := inv.printWrapped(inv.printer.T("%s is your own folder: coder plugin add %s uses its current content",
				one.Name, singleLine(one.Dir))); err != nil {
				return err
			}
			continue
		}
		dir, from, err := a.UpdatePlugin(ctx, one.Origin)
		if err != nil {
			return err
		}
		if from.Commit == one.Origin.Commit && one.Err == nil {
			if err := inv.printWrapped(inv.printer.T("%s is up to date", one.Name)); err != nil {
				return err
			}
			continue
		}
		if err := inv.printWrapped(strings.Split(sanitize.Text(app.DiffFolders(one.Dir, dir)), "\n")...); err != nil {
			return err
		}
		if err = inv.pluginConfirmAdd(ctx, a, dir, one.Name, from); err != nil {
			return errors.Join(err, a.RemoveFetchedPlugin(dir))
		}
	}
	return nil
}

// pluginMarket adds, lists and searches marketplaces.
func (inv *invocation) pluginMarket(ctx context.Context, a *app.Workspace, args []string) error {
	if len(args) == 2 && args[0] == "add" {
		name, offers, err := a.AddMarket(ctx, args[1], inv.flags.yes)
		if err != nil {
			return err
		}
		return inv.printWrapped(inv.printer.T("added the marketplace %s (plugins: %d); coder plugin marketplace search lists them", name, len(offers)))
	}
	if len(args) == 1 && args[0] == "list" {
		markets, err := a.LoadMarkets()
		if err != nil {
			return inputErrorf("%v", err)
		}
		t := display.Table{Header: display.TextCells("marketplace", "from", "folder")}
		for _, name := range slices.Sorted(maps.Keys(markets)) {
			t.Rows = append(t.Rows, display.DataCells(name, singleLine(markets[name].Source), singleLine(markets[name].Dir)))
		}
		return inv.printBlocks(t)
	}
	if len(args) == 0 || args[0] != "search" {
		return usageErrorf("coder plugin marketplace takes add PATH|OWNER/REPO|URL, list, or search [WORDS]")
	}
	offers, problems := a.MarketOffers()
	for _, problem := range problems {
		inv.warn(singleLine(problem))
	}
	t := display.Table{Header: display.TextCells("plugin", "version", "about")}
	for _, o := range offers {
		text := strings.ToLower(o.Name + " " + o.Description)
		if slices.ContainsFunc(args[1:], func(w string) bool { return !strings.Contains(text, strings.ToLower(w)) }) {
			continue
		}
		t.Rows = append(t.Rows, display.DataCells(o.Name, singleLine(o.Version), singleLine(o.Description)))
	}
	return inv.printBlocks(t)
}
