package lsp

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/host/repofile"
)

// surroundings are the directory and the environment a server is started with.
// What a project could choose programs by has no say in them: the directory is
// not the project's, where launchers look for the versions it asks for; the
// PATH has no places inside the workspace and none that depend on the
// directory; and the variables tell the tools that servers start to go by what
// the person has installed.
func (o Options) surroundings(root string) (dir string, env []string, err error) {
	path := slices.DeleteFunc(filepath.SplitList(o.path()), func(dir string) bool {
		real, err := filepath.EvalSymlinks(dir)
		return !filepath.IsAbs(dir) || err != nil || within(o.Root, real) || within(o.Root, dir)
	})
	env = append(slices.Clone(o.Env), "PATH="+strings.Join(path, string(filepath.ListSeparator)),
		"GOTOOLCHAIN=local", "GOPROXY=off",
		"RUSTUP_TOOLCHAIN="+o.rustToolchain(), "RUSTC_WRAPPER=", "RUSTC_WORKSPACE_WRAPPER=", "CARGO_NET_OFFLINE=true",
		"PYTHONSAFEPATH=1", "PYTHONDONTWRITEBYTECODE=1",
		"COREPACK_ENABLE_PROJECT_SPEC=0",
	)
	if rustc, _ := o.find("rustc"); rustc != "" {
		env = append(env, "RUSTC="+rustc)
	}
	if o.Cache == "" {
		return root, env, nil
	}
	dir = filepath.Join(o.Cache, "run")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, fmt.Errorf("make a place for language servers: %w", err)
	}
	return dir, append(env,
		"TMPDIR="+dir, "XDG_CACHE_HOME="+o.Cache, "GOCACHE="+filepath.Join(o.Cache, "go-build"),
		"GOPLSCACHE="+filepath.Join(o.Cache, "gopls"), "CARGO_TARGET_DIR="+filepath.Join(o.Cache, "cargo"),
	), nil
}

// rustToolchain is the tool-chain of the person: the one their environment or
// the settings of rustup name, or else the usual one. It must be named, or
// rustup asks the project.
func (o Options) rustToolchain() string {
	if name := o.value("RUSTUP_TOOLCHAIN"); name != "" && !strings.ContainsRune(name, filepath.Separator) {
		return name
	}
	home := o.value("RUSTUP_HOME")
	if home == "" {
		home = filepath.Join(o.value("HOME"), ".rustup")
	}
	text, _ := repofile.Own(filepath.Join(home, "settings.toml"), maxSettings) // where there is none there is no rustup
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, "=")
		if strings.TrimSpace(key) == "default_toolchain" {
			return strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return usualToolchain
}

const (
	usualToolchain = "stable"
	maxSettings    = 1 << 20 // bytes of a file of settings
)

// path is the PATH servers are looked for on.
func (o Options) path() string { return o.value("PATH") }

// value is that of a variable of the servers' environment; the last one given
// counts.
func (o Options) value(name string) (value string) {
	for _, kv := range o.Env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}
