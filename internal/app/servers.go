package app

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/host/lsp"
	"coder/internal/policy/confine"
	"coder/internal/policy/trust"
)

// languageServers says how language servers run: in trusted folders only, within
// bounds, without network, and with nothing to write to but a cache of theirs.
func (a *App) languageServers(t *toolkit) lsp.Options {
	cache := a.serverCache()
	return lsp.Options{
		Root: a.Root, Env: a.serverEnv(), Servers: a.servers, Cache: cache, Program: "coder", Version: Version,
		May: a.mayServe,
		Confine: func(cmd *exec.Cmd) error {
			_, err := t.confiner.Helper(t.work, cmd, confine.Helper{Private: true, Must: true, Write: []string{cache}})
			return err
		},
	}
}

// mayServe objects to language servers where the folder is not trusted now:
// they go by its settings, and run what these make their tools run.
func (a *App) mayServe() error {
	state, err := a.Trust.Of(a.Root)
	if err == nil && state == trust.Trusted {
		return nil
	}
	return fmt.Errorf("this folder is %s, and language servers are started only in trusted folders: trust it first, with /trust or coder trust", state)
}

// serverCache is where language servers keep what they can make again. It is
// apart from what builds use, which they must not change. "" if there is no
// place for it.
func (a *App) serverCache() string {
	if dir := a.Env.Getenv("XDG_CACHE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "coder", "lsp")
	}
	if home := a.Env.Getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, ".cache", "coder", "lsp")
	}
	return ""
}

// serverVariables are what language servers and the tools they start need to
// know: where things are, and which machine code is for. What is not here is
// withheld: nobody looks at what a server does with it.
var serverVariables = []string{
	"PATH", "HOME", "USER", "LOGNAME", "LANG", "LANGUAGE", "TZ", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "CODER_WORKSPACE",
	"GOPATH", "GOROOT", "GOMODCACHE", "GOENV", "GOFLAGS", "GOOS", "GOARCH", "GOARM", "GOAMD64", "GOEXPERIMENT", "GOWORK", "GO111MODULE",
	"CGO_ENABLED", "CGO_CFLAGS", "CGO_CPPFLAGS", "CGO_CXXFLAGS", "CGO_LDFLAGS", "CC", "CXX", "PKG_CONFIG_PATH",
	"CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "RUST_SRC_PATH",
	"CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH", "LIBRARY_PATH", "LD_LIBRARY_PATH", "SDKROOT", "DEVELOPER_DIR",
	"NVM_DIR", "VOLTA_HOME", "PNPM_HOME", "FNM_DIR", "ASDF_DIR", "ASDF_DATA_DIR", "MISE_DATA_DIR", "PYENV_ROOT", "NODENV_ROOT", "JAVA_HOME",
	"NIX_PROFILES", "LOCALE_ARCHIVE", "GORACE",
}

// serverEnv is what language servers get of the environment of commands.
func (a *App) serverEnv() []string {
	return slices.DeleteFunc(a.ChildEnv(), func(kv string) bool {
		name, _, _ := strings.Cut(kv, "=")
		return !slices.Contains(serverVariables, name) && !strings.HasPrefix(name, "LC_")
	})
}
