package app

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"coder/internal/core/jsonx"
	"coder/internal/host/atomicfile"
	"coder/internal/host/repofile"
	"coder/internal/tool/mcp"
)

const (
	// loginsFile is where the person's folder keeps logins with MCP servers. No
	// command sees it.
	loginsFile = "mcp-logins.json"
	maxLogins  = 4 << 20
)

// logins are what logins with MCP servers gave, in one file of the person's.
type logins struct{ dir string }

// mcpLogins is where logins are kept; nil where there is no place.
func (a *App) mcpLogins() mcp.Logins {
	if a.Home == "" {
		return nil
	}
	return logins{a.Home}
}

func (l logins) file() string { return filepath.Join(l.dir, loginsFile) }

func (l logins) all() (map[string]json.RawMessage, error) {
	all := make(map[string]json.RawMessage)
	text, err := repofile.Own(l.file(), maxLogins)
	if errors.Is(err, fs.ErrNotExist) {
		return all, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	return all, err
}

// Load is what the login with the server at an address gave.
func (l logins) Load(address string) (json.RawMessage, error) {
	all, err := l.all()
	return all[address], err
}

// Save keeps it, for nobody but the person.
func (l logins) Save(address string, login json.RawMessage) error {
	if err := os.MkdirAll(l.dir, 0o700); err != nil {
		return err
	}
	release, err := atomicfile.Lock(l.dir)
	if err != nil {
		return err
	}
	defer release()
	all, err := l.all()
	if err != nil {
		return err
	}
	if all[address] = login; len(login) == 0 {
		delete(all, address)
	}
	return atomicfile.Write(l.file(), jsonx.Must(all), 0o600)
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
	cmd := exec.Command(words[0], append(words[1:], address)...)
	cmd.Env, cmd.Dir = a.ChildEnv(), string(filepath.Separator)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }() // it may stay open after this program
	}
}

// LoginMCP logs in with an MCP server on the web. Show is given the address that
// is opened in the browser; pasted, which may be nil, tells where that led.
func (a *App) LoginMCP(ctx context.Context, name string, show func(address string), pasted <-chan string) error {
	h := a.mcp
	if h == nil {
		h = a.newMCPHost(ctx, a.mcpServers, nil, nil)
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
		h = a.newMCPHost(ctx, a.mcpServers, nil, nil)
		defer h.Close()
	}
	return h.Forget(name)
}
