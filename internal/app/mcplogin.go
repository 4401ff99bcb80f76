package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
	"coder/internal/tool/mcp"
)

const (
	// loginsDir is where the person's folder keeps logins with MCP servers. No
	// command sees it.
	loginsDir = "mcp-logins"
	maxLogin  = 256 << 10
)

// logins are what logins with MCP servers gave, a file each.
type logins struct{ dir string }

// mcpLogins is where logins are kept; nil where there is no place.
func (a *App) mcpLogins() mcp.Logins {
	if a.Home == "" {
		return nil
	}
	return logins{filepath.Join(a.Home, loginsDir)}
}

// file is the one for the server at an address.
func (l logins) file(address string) string {
	sum := sha256.Sum256([]byte(address))
	return filepath.Join(l.dir, hex.EncodeToString(sum[:16])+".json")
}

// Load is what the login with the server at an address gave; nil if there is none.
func (l logins) Load(address string) (json.RawMessage, error) {
	text, err := repofile.Own(l.file(address), maxLogin)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// Save keeps it, for nobody but the person.
func (l logins) Save(address string, login json.RawMessage) error {
	if len(login) == 0 {
		return os.Remove(l.file(address))
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(l.file(address), login, 0o600)
}

// browse opens an address in the person's browser, if there is one. It does not
// wait.
func (a *App) browse(address string) {
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
	cmd := a.Door().Command(context.Background(), words[0], append(words[1:], address)...)
	cmd.Dir = string(filepath.Separator)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }() // it may stay open after this program
	}
}

// LoginMCP logs in with an MCP server on the web. Show is given the address that
// is opened in the browser; pasted, which may be nil, tells where that led.
func (a *App) LoginMCP(ctx context.Context, name string, show func(address string), pasted <-chan string) error {
	h := a.mcp
	if h == nil {
		h = a.newMCPHost(ctx, a.mcpServers, nil, true, nil)
		defer h.Close()
	}
	err := h.Authorise(ctx, name, func(address string) { show(address); a.browse(address) }, pasted)
	if err != nil && ctx.Err() == nil {
		return inputf("MCP server %s: %v", oneLine(name), err)
	}
	return err
}

// loginMCP is LoginMCP for a session, where nothing can be pasted.
func (a *App) loginMCP(ctx context.Context, name string, show func(address string)) error {
	return a.LoginMCP(ctx, name, show, nil)
}

// LogoutMCP drops what a login gave. It reports whether there was one.
func (a *App) LogoutMCP(ctx context.Context, name string) (bool, error) {
	h := a.mcp
	if h == nil {
		h = a.newMCPHost(ctx, a.mcpServers, nil, true, nil)
		defer h.Close()
	}
	return h.Forget(name)
}
