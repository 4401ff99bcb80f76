package cli

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"coder/internal/app"
	"coder/internal/config"
	"coder/internal/core/display"
	"coder/internal/core/jsonx"
	"coder/internal/core/message"
	"coder/internal/slash"
	"coder/internal/tool/mcp"
	"coder/internal/ui/streamjson"
	"coder/internal/ui/term"
	"coder/internal/ui/term/ink"
)

// mcpVerbs lists the commands of coder mcp.
var mcpVerbs = []string{"add", "list", "get", "remove", "test", "login", "logout", "serve"}

// runMCP manages the list of MCP servers, and tests them.
func (inv *invocation) runMCP(ctx context.Context) error {
	fl := inv.flags
	if len(fl.args) == 0 {
		return usageErrorf("coder mcp takes add, list, get, remove, test, login, logout or serve")
	}
	what, rest := fl.args[0], fl.args[1:]
	if !slices.Contains(mcpVerbs, what) {
		return usageErrorf("unknown command: coder mcp %s; use add, list, get, remove, test, login, logout or serve",
			singleLine(what))
	}
	a, err := inv.newApp(inv.warn)
	if err != nil {
		return err
	}
	switch {
	case what == "add" && len(rest) >= 2:
		return inv.mcpAdd(a, rest[0], rest[1:])
	case what == "add":
		return usageErrorf("coder mcp add needs a name and a command or an address: coder mcp add NAME -- COMMAND ARGS, coder mcp add NAME URL")
	case what == "list" && len(rest) == 0:
		return inv.mcpList(a)
	case what == "remove" && len(rest) == 1:
		file, err := a.ChangeMCP(inv.mcpScope(), rest[0], nil)
		if err != nil {
			return err
		}
		return inv.printWrapped(inv.printer.T("removed from %s: %s", file, rest[0]))
	case what == "serve" && len(rest) == 0:
		return inv.runMCPServe(ctx, a)
	case what == "login" && len(rest) == 1:
		return inv.mcpLogin(ctx, a, rest[0])
	case what == "logout" && len(rest) == 1:
		found, err := a.LogoutMCP(ctx, rest[0])
		if err == nil && !found {
			err = inputErrorf("no saved login for the MCP server %s", singleLine(rest[0]))
		}
		if err != nil {
			return err
		}
		return inv.printWrapped(inv.printer.T("logged out: %s", rest[0]))
	case what == "test" && len(rest) == 0:
		return inv.mcpTest(ctx, a, a.MCPServers())
	case (what == "get" || what == "test") && len(rest) == 1:
		i := slices.IndexFunc(a.MCPServers(), func(s mcp.Server) bool { return s.Name == rest[0] })
		if i < 0 {
			if i := slices.IndexFunc(a.MCPSkipped(), func(s mcp.Status) bool { return s.Name == rest[0] }); i >= 0 {
				s := a.MCPSkipped()[i]
				return inputErrorf("the MCP server %s (%s) is skipped: %s", singleLine(s.Name), singleLine(s.Source), s.Reason)
			}
			return inputErrorf("unknown MCP server %s; coder mcp list shows the servers", singleLine(rest[0]))
		}
		if what == "test" {
			return inv.mcpTest(ctx, a, a.MCPServers()[i:i+1])
		}
		return inv.mcpGet(a.MCPServers()[i])
	}
	if what == "list" || what == "serve" {
		return usageErrorf("coder %s takes no arguments", "mcp "+what)
	}
	return usageErrorf("coder mcp %s needs the name of one server; coder mcp list shows the servers", what)
}

// mcpLogin logs in to a server with the user's browser, on any machine: the address that it ends at may
// be typed in here.
func (inv *invocation) mcpLogin(ctx context.Context, a *app.Workspace, name string) error {
	reading, stop := context.WithCancel(ctx)
	pasted := make(chan string)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(pasted)
		for {
			line, err := inv.stdin.ReadLine(reading, maxPromptBytes)
			if err != nil {
				return
			}
			select {
			case pasted <- line:
			case <-reading.Done():
				return
			}
		}
	})
	err := a.LoginMCP(ctx, name, func(address string) {
		// a user who cannot see it ends the program
		_ = inv.printWrapped(inv.printer.T("open this address in a browser and log in there:") + "\n" + address + "\n" +
			inv.printer.T("if the browser is on another machine, paste the address it shows at the end here"))
	}, pasted)
	stop()
	reader.Wait()
	if err != nil {
		return err
	}
	return inv.printWrapped(inv.printer.T("logged in: %s", name))
}

// mcpScope returns the scope whose file is changed.
func (inv *invocation) mcpScope() string {
	if inv.flags.scope == app.MCPProject {
		return app.MCPProject
	}
	return app.MCPUser
}

// mcpAdd adds a server with the arguments of other programs.
func (inv *invocation) mcpAdd(a *app.Workspace, name string, line []string) error {
	if clean := mcp.CleanName(name); clean != name {
		return inputErrorf("%q is not a valid MCP server name: use letters, digits, - and _", singleLine(name))
	}
	fl := inv.flags
	kind := fl.mcpTransport
	if kind == "" && len(line) == 1 && (strings.HasPrefix(line[0], "http://") || strings.HasPrefix(line[0], "https://")) {
		kind = mcp.HTTP
	}
	if scheme, _, is := strings.Cut(line[0], "://"); is && kind == "" {
		return inputErrorf("%s:// cannot address an MCP server: use http:// or https://", singleLine(scheme))
	}
	settings := map[string]any{}
	if kind == mcp.HTTP || kind == mcp.SSE {
		settings["type"], settings["url"] = kind, line[0]
		if len(line) > 1 {
			return usageErrorf("a remote server takes only an address")
		}
	} else {
		settings["command"] = line[0]
		if len(line) > 1 {
			settings["args"] = line[1:]
		}
	}
	for key, pairs := range map[string]struct {
		list []string
		mark string
	}{"env": {fl.mcpEnv, "="}, "headers": {fl.mcpHeaders, ":"}} {
		given := make(map[string]string)
		for _, pair := range pairs.list {
			name, value, ok := strings.Cut(pair, pairs.mark)
			if !ok || strings.TrimSpace(name) == "" {
				return usageErrorf("%q is not NAME%sVALUE", singleLine(pair), pairs.mark)
			}
			given[strings.TrimSpace(name)] = strings.TrimSpace(value)
		}
		if len(given) > 0 {
			settings[key] = given
		}
	}
	raw := jsonx.MustMarshal(settings)
	if _, err := mcp.ParseServer(name, raw); err != nil {
		return inputErrorf("%v", err)
	}
	for _, s := range slices.Concat(a.MCPStatus(), a.MCPSkipped()) {
		if s.Name == name && s.FromProject == (inv.mcpScope() == app.MCPProject) {
			inv.warn(fmt.Sprintf("replaced the existing MCP server %s (%s)", name, singleLine(s.Source)))
		}
	}
	file, err := a.ChangeMCP(inv.mcpScope(), name, raw)
	if err != nil {
		return err
	}
	if _, skipped, err := config.ParseServers(jsonx.MustMarshal(map[string]any{name: settings}), inv.Env.Getenv,
		nil); err == nil && len(skipped) > 0 {
		inv.warn(fmt.Sprintf("the MCP server %s is skipped until this is fixed: %v", name, skipped[0].Err))
	}
	if inv.mcpScope() == app.MCPProject { // trust was for the file before the change
		return inv.printWrapped(inv.printer.T("written to %s: %s; run coder trust to allow it here, then coder mcp test %s",
			file, name, name))
	}
	return inv.printWrapped(inv.printer.T("written to %s: %s; test it with coder mcp test %s", file, name, name))
}

// mcpList lists the servers without starting any.
func (inv *invocation) mcpList(a *app.Workspace) error {
	all := slices.Concat(a.MCPStatus(), a.MCPSkipped())
	if inv.flags.json {
		return inv.printJSON(mcpRows(all))
	}
	if len(all) == 0 {
		return inv.printNoServers()
	}
	t := display.Table{Header: display.TextCells("server", "type", "where")}
	for _, s := range all {
		row := display.DataCells(singleLine(s.Name), s.Type, singleLine(s.DisplayAddress()))
		if s.State == mcp.Invalid {
			row[2] = display.Cell{Text: fmt.Sprintf("skipped (%s): %s", singleLine(s.Source), s.Reason), Words: true}
		}
		t.Rows = append(t.Rows, row)
	}
	return inv.printBlocks(t)
}

func (inv *invocation) printNoServers() error {
	return inv.printWrapped(inv.printer.T("no MCP servers; coder mcp add adds one"))
}

// mcpGet shows one server's settings, without possibly secret values.
func (inv *invocation) mcpGet(s mcp.Server) error {
	names := func(given map[string]string) string {
		return singleLine(strings.Join(slices.Sorted(maps.Keys(given)), ", "))
	}
	t := display.Table{Rows: [][]display.Cell{
		{{Text: "server", Words: true}, {Text: singleLine(s.Name)}}, {{Text: "type", Words: true}, {Text: s.Type}},
		{{Text: "where", Words: true}, {Text: singleLine(s.DisplayAddress())}},
		{{Text: "variables", Words: true}, {Text: names(s.Env)}}, {{Text: "headers", Words: true}, {Text: names(s.Headers)}},
		{{Text: "believed", Words: true}, {Text: fmt.Sprint(s.TrustHints)}},
		{{Text: "confined", Words: true}, {Text: fmt.Sprint(!s.Unconfined)}},
	}}
	return inv.printBlocks(t)
}

// mcpTest starts servers, lists what they have, and fails if one is unavailable.
func (inv *invocation) mcpTest(ctx context.Context, a *app.Workspace, servers []mcp.Server) error {
	var all []mcp.Status
	failed := 0
	for _, s := range servers {
		status, err := a.TryMCP(ctx, s)
		if err = cmp.Or(ctx.Err(), err); err != nil {
			return err
		}
		if status.State != mcp.Ready {
			failed++
		}
		all = append(all, status)
	}
	if len(servers) == len(a.MCPServers()) {
		all = append(all, a.MCPSkipped()...)
	}
	var err error
	switch {
	case inv.flags.json:
		err = inv.printJSON(mcpRows(all))
	case len(all) == 0:
		err = inv.printNoServers()
	default:
		err = inv.printBlocks(slash.MCPTable(all)...)
	}
	if err == nil && failed > 0 {
		err = message.Errorf("%d of %d MCP servers are unavailable", failed, len(all))
	}
	return err
}

// streamServers returns the MCP servers in other agents' words.
func streamServers(states []mcp.Status) (all []streamjson.Server) {
	for _, s := range states {
		status := map[mcp.State]string{mcp.Disabled: "disabled", mcp.Ready: "connected", mcp.Failed: "failed",
			mcp.LoginRequired: "needs-auth"}[s.State]
		all = append(all, streamjson.Server{Name: s.Name, Status: cmp.Or(status, "pending")})
	}
	return all
}

// printBlocks writes blocks to stdout, laid out for a terminal.
func (inv *invocation) printBlocks(blocks ...display.Block) error {
	text := display.Blocks(blocks).Translate(inv.printer.TranslateText, ink.Width)
	if inv.columns > 0 {
		text = term.RenderText(blocks, inv.columns, term.Options{Translator: inv.printer, ASCII: inv.useASCII(),
			ScreenReader: inv.settings.Config.UI.Plain})
	}
	_, err := fmt.Fprintln(inv.Stdout, strings.TrimRight(text, "\n"))
	return err
}

// mcpRow is a server in JSON output.
type mcpRow struct {
	Name    string   `json:"name"`
	Type    string   `json:"type"`
	Where   string   `json:"where"`
	State   string   `json:"state"`
	Reason  string   `json:"why,omitempty"`
	Tools   []string `json:"tools,omitempty"`
	Refused []string `json:"refused,omitempty"`
}

func mcpRows(all []mcp.Status) []mcpRow {
	rows := []mcpRow{}
	for _, s := range all {
		row := mcpRow{Name: s.Name, Type: s.Type, Where: s.DisplayAddress(), State: string(s.State), Reason: s.Reason,
			Refused: s.Skipped}
		for _, t := range s.Tools {
			row.Tools = append(row.Tools, t.Name)
		}
		rows = append(rows, row)
	}
	return rows
}
