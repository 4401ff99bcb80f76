package slash

import (
	"context"
	"fmt"
	"strings"
	"time"

	"coder/internal/core/display"
	"coder/internal/tool/mcp"
)

// loginTimeout is the timeout of a login.
const loginTimeout = 10 * time.Minute

// MCP shows the status of MCP servers, lists their tools, and restarts them. host is nil if there are no
// servers.
func MCP(host *mcp.Host, login func(ctx context.Context, name string, show func(address string)) error) Command {
	return Command{
		Name: "mcp", ShowsOnly: true, Args: "[tools|reconnect [SERVER]|login SERVER]",
		Help: "list MCP servers and their tools, restart them, log in",
		Run: func(ctx context.Context, c call) (outcome, error) {
			if host == nil {
				return showText("no MCP servers; coder mcp add adds one")
			}
			what, name, _ := strings.Cut(strings.TrimSpace(c.Args), " ")
			switch what {
			case "":
				host.Start()
				return show(MCPTable(host.Status())...)
			case "tools":
				return show(mcpTools(host.Status()))
			case "reconnect":
				if name = strings.TrimSpace(name); !host.Reconnect(name) {
					return usageError("unknown MCP server %q", name)
				}
				return showText("restarted; /mcp shows their state")
			case "login":
				name = strings.TrimSpace(name)
				ctx, cancel := context.WithTimeout(ctx, loginTimeout)
				defer cancel()
				err := login(ctx, name, func(address string) {
					_ = c.Warn(ctx, fmt.Sprintf("open this address in a browser and log in there:\n%s", address)) // Esc stops waiting
				})
				if err != nil {
					return usageError("%v", err)
				}
				host.Reconnect(name)
				return showText("logged in; /mcp shows the state")
			}
			return usageError("/mcp takes tools, reconnect or login, not %q", what)
		},
	}
}

// MCPTable shows the status of servers, and what is not used of them.
func MCPTable(all []mcp.Status) []display.Block {
	t := display.Table{Header: display.TextCells("server", "state", "tools", "where")}
	var refused []string
	for _, s := range all {
		state := display.Cell{Text: string(s.State), Words: true}
		if s.Reason != "" {
			state = display.Cell{Text: string(s.State) + ": " + s.Reason, Words: true}
		}
		t.Rows = append(t.Rows, []display.Cell{{Text: s.Name}, state, {Text: fmt.Sprint(len(s.Tools))},
			{Text: s.DisplayAddress()}})
		for _, text := range s.Skipped {
			refused = append(refused, s.Name+": "+text)
		}
	}
	blocks := []display.Block{t}
	if len(refused) > 0 {
		blocks = append(blocks, display.Text(strings.Join(refused, "\n")))
	}
	return blocks
}

func mcpTools(all []mcp.Status) display.Table {
	var t display.Table
	for _, s := range all {
		for _, tool := range s.Tools {
			mark := ""
			if !tool.Loaded {
				mark = "found by search"
			}
			t.Rows = append(t.Rows, []display.Cell{{Text: tool.Name}, {Text: mark, Words: true}, {Text: tool.Description}})
		}
	}
	return t
}
