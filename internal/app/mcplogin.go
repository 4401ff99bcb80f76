package app

import (
	"context"
	"path/filepath"
	"runtime"
	"strings"

	"coder/internal/tool/mcp"
)

// loginsDir is the folder in CODER_HOME for logins to MCP servers. Commands cannot see it.
const loginsDir = "mcp-logins"

// newLoginStore returns the store of logins, or nil without a home folder.
func (a *Site) newLoginStore() mcp.Logins {
	if a.Home == "" {
		return nil
	}
	return mcp.SavedLogins{Dir: filepath.Join(a.Home, loginsDir)}
}

// openBrowser opens an address in the user's browser, if there is one, without waiting.
func (a *Site) openBrowser(address string) {
	words := strings.Fields(a.Env.Getenv("BROWSER"))
	switch {
	case len(words) > 0:
	case runtime.GOOS == "darwin":
		words = []string{"open"}
	case a.Env.Getenv("DISPLAY") != "" || a.Env.Getenv("WAYLAND_DISPLAY") != "":
		words = []string{"xdg-open"}
	default:
		return
	}
	cmd := a.Launcher().Command(context.Background(), words[0], append(words[1:], address)...)
	cmd.Dir = string(filepath.Separator)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }() // the browser may outlive coder
	}
}

// LoginMCP logs in to an MCP server on the web. show gets the address that opens in
// the browser; pasted, which may be nil, receives the address to which that led.
func (a *Workspace) LoginMCP(ctx context.Context, name string, show func(address string), pasted <-chan string) error {
	h := a.newMCPHost(ctx, a.mcpServers, nil, nil, nil)
	defer h.Close()
	return a.login(ctx, h, name, show, pasted)
}

func (a *Site) login(ctx context.Context, h *mcp.Host, name string, show func(address string),
	pasted <-chan string) error {
	err := h.Authorise(ctx, name, func(address string) { show(address); a.openBrowser(address) }, pasted)
	if err != nil && ctx.Err() == nil {
		return inputErrorf("MCP server %s: %v", singleLine(name), err)
	}
	return err
}

// loginMCP is LoginMCP for a session, where the user cannot paste.
func (a *Session) loginMCP(ctx context.Context, name string, show func(address string)) error {
	if a.kit.mcp == nil {
		return a.LoginMCP(ctx, name, show, nil)
	}
	return a.login(ctx, a.kit.mcp, name, show, nil)
}

// LogoutMCP deletes a login. It reports whether there was one.
func (a *Workspace) LogoutMCP(ctx context.Context, name string) (bool, error) {
	h := a.newMCPHost(ctx, a.mcpServers, nil, nil, nil)
	defer h.Close()
	return h.DeleteLogin(name)
}
