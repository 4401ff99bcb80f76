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
	// loginsDir is the folder in CODER_HOME for logins to MCP servers. Commands cannot see it.
	loginsDir = "mcp-logins"
	maxLogin  = 256 << 10
)

// logins stores logins to MCP servers, one file each.
type logins struct{ dir string }

// mcpLogins returns the store of logins, or nil without a home folder.
func (a *Site) mcpLogins() mcp.Logins {
	if a.Home == "" {
		return nil
	}
	return logins{filepath.Join(a.Home, loginsDir)}
}

// file returns the file for the server at an address.
func (l logins) file(address string) string {
	sum := sha256.Sum256([]byte(address))
	return filepath.Join(l.dir, hex.EncodeToString(sum[:16])+".json")
}

// Load returns the login to the server at an address, or nil.
func (l logins) Load(address string) (json.RawMessage, error) {
	text, err := repofile.Own(l.file(address), maxLogin)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return text, err
}

// Save saves a login, readable only by the user.
func (l logins) Save(address string, login json.RawMessage) error {
	if len(login) == 0 {
		return os.Remove(l.file(address))
	}
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	return atomicfile.Write(l.file(address), login, 0o600)
}

// browse opens an address in the user's browser, if there is one, without waiting.
func (a *Site) browse(address string) {
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
		go func() { _ = cmd.Wait() }() // the browser may outlive coder
	}
}

// LoginMCP logs in to an MCP server on the web. show gets the address that opens in
// the browser; pasted, which may be nil, receives the address to which that led.
func (a *App) LoginMCP(ctx context.Context, name string, show func(address string), pasted <-chan string) error {
	h := a.newMCPHost(ctx, a.mcpServers, nil, nil, nil)
	defer h.Close()
	return a.login(ctx, h, name, show, pasted)
}

func (a *Site) login(ctx context.Context, h *mcp.Host, name string, show func(address string), pasted <-chan string) error {
	err := h.Authorise(ctx, name, func(address string) { show(address); a.browse(address) }, pasted)
	if err != nil && ctx.Err() == nil {
		return inputf("MCP server %s: %v", oneLine(name), err)
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
func (a *App) LogoutMCP(ctx context.Context, name string) (bool, error) {
	h := a.newMCPHost(ctx, a.mcpServers, nil, nil, nil)
	defer h.Close()
	return h.Forget(name)
}
