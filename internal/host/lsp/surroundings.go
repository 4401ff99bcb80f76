package lsp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"coder/internal/core/message"
	"coder/internal/host/repofile"
)

// launchEnv returns the directory and environment to start a server with. The project cannot choose
// programs through them: the directory is outside the project, since launchers look there for requested
// versions; the PATH has no directories inside the workspace and no relative ones; and the variables
// direct the tools that servers start to the user's own installations.
func (o Options) launchEnv(root string) (dir string, env []string, err error) {
	path := slices.DeleteFunc(filepath.SplitList(o.searchPath()), func(dir string) bool {
		real, err := filepath.EvalSymlinks(dir)
		return !filepath.IsAbs(dir) || err != nil || isWithin(o.Root, real) || isWithin(o.Root, dir)
	})
	env = append(slices.Clone(o.Env), "PATH="+strings.Join(path, string(filepath.ListSeparator)),
		"GOTOOLCHAIN=local", "GOPROXY=off",
		"RUSTUP_TOOLCHAIN="+o.rustToolchain(), "RUSTC_WRAPPER=", "RUSTC_WORKSPACE_WRAPPER=", "CARGO_NET_OFFLINE=true",
		"PYTHONSAFEPATH=1", "PYTHONDONTWRITEBYTECODE=1",
		"COREPACK_ENABLE_PROJECT_SPEC=0",
	)
	if rustc, _ := o.findProgram("rustc"); rustc != "" {
		env = append(env, "RUSTC="+rustc)
	}
	if o.Cache == "" {
		return root, env, nil
	}
	dir = filepath.Join(o.Cache, "run")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", nil, message.Errorf("create a folder for language servers: %w", err)
	}
	return dir, append(env,
		"TMPDIR="+dir, "XDG_CACHE_HOME="+o.Cache, "GOCACHE="+filepath.Join(o.Cache, "go-build"),
		"GOPLSCACHE="+filepath.Join(o.Cache, "gopls"), "CARGO_TARGET_DIR="+filepath.Join(o.Cache, "cargo"),
	), nil
}

// rustToolchain returns the user's toolchain: from the environment or rustup's settings, or else the
// default. It must be explicit, or rustup consults the project.
func (o Options) rustToolchain() string {
	if name := o.getenv("RUSTUP_TOOLCHAIN"); name != "" && !strings.ContainsRune(name, filepath.Separator) {
		return name
	}
	home := o.getenv("RUSTUP_HOME")
	if home == "" {
		home = filepath.Join(o.getenv("HOME"), ".rustup")
	}
	text, _ := repofile.ReadOwn(filepath.Join(home, "settings.toml"), maxSettings) // without the file there is no rustup
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, "=")
		if strings.TrimSpace(key) == "default_toolchain" {
			return strings.Trim(strings.TrimSpace(value), `"'`)
		}
	}
	return defaultToolchain
}

const (
	defaultToolchain = "stable"
	maxSettings      = 1 << 20 // limit on a settings file, in bytes
)

func (o Options) searchPath() string { return o.getenv("PATH") }

// getenv returns a variable of the servers' environment; the last assignment counts.
func (o Options) getenv(name string) (value string) {
	for _, kv := range o.Env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			value = v
		}
	}
	return value
}

// firstNativeVersion is the first major version of TypeScript that is a language server itself. Older versions
// bring a tsserver, which needs a wrapper.
const firstNativeVersion = 7

// isNativeTypeScript reports whether a tsc program belongs to a TypeScript that is a language server. It reads
// the version instead of running the program.
func isNativeTypeScript(_ Options, program string) bool {
	var pack struct{ Name, Version string }
	text, err := repofile.ReadOwn(filepath.Join(packageDir(program), "package.json"), maxSettings)
	if err != nil || json.Unmarshal(text, &pack) != nil {
		return false
	}
	major, _, _ := strings.Cut(pack.Version, ".")
	n, err := strconv.Atoi(major)
	return err == nil && pack.Name == "typescript" && n >= firstNativeVersion
}

// packageDir returns the folder of the package whose bin folder contains a program.
func packageDir(program string) string {
	real, err := filepath.EvalSymlinks(program)
	if err != nil {
		return program
	}
	return filepath.Dir(filepath.Dir(real))
}

func hasTsserver(o Options, _ string) bool { return o.tsserverPath() != "" }

// tsserverPath returns the library of the user's tsserver, or "". The project's own is untrusted code.
func (o Options) tsserverPath() string {
	bin, _ := o.findProgram("tsserver")
	if bin == "" {
		return ""
	}
	lib := filepath.Join(packageDir(bin), "lib", "tsserver.js")
	if _, err := os.Stat(lib); err != nil {
		return ""
	}
	return lib
}

// typescriptOptions name the TypeScript to use, so that the server does not look for the project's. They
// make answers wait for loading instead of guessing, and disable downloads of type packages.
func typescriptOptions(o Options) any {
	return map[string]any{
		"disableAutomaticTypingAcquisition": true,
		"tsserver":                          map[string]any{"path": o.tsserverPath(), "useSyntaxServer": "never"},
	}
}

// tsDiagnostic is a diagnostic in tsserver's form, counted from 1.
type tsDiagnostic struct {
	Start, End tsPosition
	Text       string
	Code       json.RawMessage
	Category   string
}

type tsPosition struct{ Line, Offset int }

func (p tsPosition) position() Position { return Position{max(0, p.Line-1), max(0, p.Offset-1)} }

// requestTsserver requests a document's diagnostics from tsserver itself. Its unsolicited ones arrive in
// pieces, and nothing marks the last.
func requestTsserver(ctx context.Context, s *server, path string) (list []Diagnostic, err error) {
	for _, about := range []string{"syntacticDiagnosticsSync", "semanticDiagnosticsSync"} {
		var reply struct {
			Type string         `json:"type"`
			Body []tsDiagnostic `json:"body"`
		}
		ask := map[string]any{"command": "typescript.tsserverRequest",
			"arguments": []any{about, map[string]any{"file": pathToURI(path)}}}
		if err := s.request(ctx, requestTimeout, "workspace/executeCommand", ask, &reply); err != nil {
			return list, err
		}
		if reply.Type != "response" || reply.Body == nil {
			return list, errors.New("tsserver did not answer")
		}
		sent := make([]wireDiagnostic, len(reply.Body))
		for i, d := range reply.Body {
			sent[i] = wireDiagnostic{Range{d.Start.position(), d.End.position()}, cmp.Or(severities[d.Category], Error), d.Code,
				"typescript", d.Text}
		}
		list = append(list, convertDiagnostics(displayName(s.top, path), sent)...)
	}
	return list, nil
}

// severities maps tsserver's categories; any other is an error.
var severities = map[string]Severity{"warning": Warning, "suggestion": Hint, "message": Information}
