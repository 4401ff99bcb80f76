package lsp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"coder/internal/core/jsonx"
	"coder/internal/core/message"
)

// Kind describes a language server: which files it serves and how to start it.
type Kind struct {
	Name     string // program name, for display
	Language string // for people: "Go"
	// Command is the program and its arguments. A program that is not an absolute path is searched on the
	// PATH.
	Command []string
	// Files maps file name endings, such as ".go", to language ids.
	Files map[string]string
	// Markers are files in the root of a project, the most certain first. Among equals, the one nearest to
	// the file counts.
	Markers [][]string
	// Init is sent with the initialize request. Settings answers the server's configuration requests by
	// section. Both may be nil.
	Init     any
	Settings map[string]any
	Env      []string // NAME=value, added to the environment of all servers
	Install  string   // how to install it, for display

	// initOptions, if not nil, computes the value to send instead of Init.
	initOptions func(o Options) any
	// accepts reports whether a program with this name can serve; nil accepts any.
	accepts func(o Options, program string) bool

	// The next fields say how to detect that the server's diagnostics are complete. A server that answers
	// diagnostic requests needs none of them. Without any, an empty list never means that there are no
	// errors.

	// requestDiagnostics requests a document's diagnostics in a server-specific way.
	requestDiagnostics func(ctx context.Context, s *server, path string) ([]Diagnostic, error)
	// publishesComplete reports that each publication about a text is complete.
	publishesComplete bool
	// announcesIdle reports that the server announces when it is idle ("experimental/serverStatus"), and is busy
	// until then.
	announcesIdle bool

	// limitation says what the server does not check, if that matters.
	limitation string
}

// goplsSettings make gopls answer diagnostic requests, instead of only publishing when it likes.
var goplsSettings = map[string]any{"pullDiagnostics": true}

// rustSettings keep rust-analyzer from building: build scripts and macros are the project's programs.
var rustSettings = map[string]any{
	"cargo":        map[string]any{"buildScripts": map[string]any{"enable": false}},
	"procMacro":    map[string]any{"enable": false},
	"checkOnSave":  false,
	"cachePriming": map[string]any{"enable": false},
}

var typescriptFiles = map[string]string{
	".ts": "typescript", ".mts": "typescript", ".cts": "typescript", ".tsx": "typescriptreact",
	".js": "javascript", ".mjs": "javascript", ".cjs": "javascript", ".jsx": "javascriptreact",
}

var typescriptMarkers = [][]string{
	{"package-lock.json", "yarn.lock", "pnpm-lock.yaml", "bun.lock", "bun.lockb"},
	{"tsconfig.json", "jsconfig.json", "package.json"},
}

var pythonFiles = map[string]string{".py": "python", ".pyi": "python"}

var pythonMarkers = [][]string{{"pyproject.toml", "setup.py", "setup.cfg", "pyrightconfig.json", "requirements.txt",
	"Pipfile"}}

// builtinKinds are the built-in servers. If several serve a file, the first installed one is used.
var builtinKinds = []Kind{
	{
		Name: "gopls", Language: "Go", Command: []string{"gopls"},
		Files:   map[string]string{".go": "go", "go.mod": "go.mod", "go.work": "go.work"},
		Markers: [][]string{{"go.work"}, {"go.mod"}},
		Init:    goplsSettings, Settings: map[string]any{"gopls": goplsSettings},
		Install: "go install golang.org/x/tools/gopls@latest",
	},
	{
		Name: "pyright", Language: "Python", Command: []string{"pyright-langserver", "--stdio"},
		Files: pythonFiles, Markers: pythonMarkers, Install: "npm install -g pyright",
	},
	{
		Name: "pylsp", Language: "Python", Command: []string{"pylsp"},
		Files: pythonFiles, Markers: pythonMarkers, Install: "pip install 'python-lsp-server[all]'",
		limitation: "the server finds only what its installed linters check; python3 -m py_compile checks the syntax",
	},
	{
		Name: "tsc", Language: "TypeScript", Command: []string{"tsc", "--lsp", "--stdio"},
		Files: typescriptFiles, Markers: typescriptMarkers, accepts: isNativeTypeScript,
		Install: "npm install -g typescript@7",
	},
	{
		Name: "typescript-language-server", Language: "TypeScript",
		Command: []string{"typescript-language-server", "--stdio"},
		Files:   typescriptFiles, Markers: typescriptMarkers, accepts: hasTsserver, initOptions: typescriptOptions,
		requestDiagnostics: requestTsserver,
		Install:            "npm install -g typescript-language-server typescript@5",
	},
	{
		Name: "rust-analyzer", Language: "Rust", Command: []string{"rust-analyzer"},
		Files: map[string]string{".rs": "rust"}, Markers: [][]string{{"Cargo.lock"}, {"Cargo.toml"}},
		Init: rustSettings, Settings: map[string]any{"rust-analyzer": rustSettings},
		Install: "rustup component add rust-analyzer", announcesIdle: true,
		limitation: "the server checks without the compiler; cargo check finds more",
	},
	{
		Name: "clangd", Language: "C and C++", Command: []string{"clangd", "--background-index=false"},
		Files: map[string]string{
			".c": "c", ".h": "cpp", ".cc": "cpp", ".cpp": "cpp", ".cxx": "cpp", ".hh": "cpp", ".hpp": "cpp", ".hxx": "cpp",
			".m": "objective-c", ".mm": "objective-cpp",
		},
		Markers: [][]string{{"compile_commands.json", "compile_flags.txt", ".clangd"}},
		Install: "install your system's clangd package", publishesComplete: true,
	},
	{
		Name: "bash-language-server", Language: "shell scripts", Command: []string{"bash-language-server", "start"},
		Files:      map[string]string{".sh": "shellscript", ".bash": "shellscript"},
		Install:    "npm install -g bash-language-server",
		limitation: "the server finds errors only if shellcheck is installed; bash -n checks the syntax",
	},
}

// Kinds returns the built-in servers, in order of preference for each language.
func Kinds() []Kind { return slices.Clone(builtinKinds) }

// languageID returns the language id of a file, or "" if k does not serve it.
func (k Kind) languageID(path string) string {
	base := filepath.Base(path)
	if id := k.Files[base]; id != "" {
		return id
	}
	return k.Files[strings.ToLower(filepath.Ext(base))]
}

// exampleName returns a file name that k serves.
func (k Kind) exampleName() string {
	ending := slices.Min(slices.Collect(maps.Keys(k.Files)))
	if strings.HasPrefix(ending, ".") {
		return "x" + ending
	}
	return ending
}

// projectOf returns the root of a file's project: the nearest directory with one of k's markers, not
// above top, or else top.
func (k Kind) projectOf(top, file string) string {
	for _, group := range k.Markers {
		for dir := filepath.Dir(file); isWithin(top, dir); dir = filepath.Dir(dir) {
			if containsAny(dir, group) {
				return dir
			}
			if dir == top {
				break
			}
		}
	}
	return top
}

func isWithin(top, dir string) bool {
	rel, err := filepath.Rel(top, dir)
	return err == nil && filepath.IsLocal(rel)
}

func containsAny(dir string, names []string) bool {
	return slices.ContainsFunc(names, func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil
	})
}

// kindFor chooses the server for a file and returns its command.
func (o Options) kindFor(path string) (Kind, []string, error) {
	missing := &NoServerError{Path: path}
	for _, k := range slices.Concat(o.Servers, builtinKinds) {
		if k.languageID(path) == "" {
			continue
		}
		if len(k.Command) == 0 {
			return Kind{}, nil, message.Errorf("the language server for %s is disabled", k.Language)
		}
		program, inside := o.findProgram(k.Command[0])
		if program != "" && (k.accepts == nil || k.accepts(o, program)) {
			return k, append([]string{program}, k.Command[1:]...), nil
		}
		if missing.Language = k.Language; inside != "" {
			missing.Refused = append(missing.Refused, inside)
		}
		if k.Install != "" {
			missing.Install = append(missing.Install, k.Install)
		}
	}
	return Kind{}, nil, missing
}

// HasServer reports whether any language server is installed.
func (p *Pool) HasServer() bool {
	for _, k := range slices.Concat(p.options.Servers, builtinKinds) {
		if len(k.Command) == 0 {
			continue
		}
		if program, _ := p.options.findProgram(k.Command[0]); program != "" {
			return true
		}
	}
	return false
}

// findProgram searches the PATH for a program and returns "" if there is none. It skips directories inside the
// workspace and relative ones, because the project may have put programs there. It returns a program
// skipped for that reason as inside.
func (o Options) findProgram(program string) (file, inside string) {
	if filepath.IsAbs(program) && isExecutable(program) {
		return program, ""
	}
	if strings.ContainsRune(program, filepath.Separator) {
		return "", ""
	}
	for _, dir := range filepath.SplitList(o.searchPath()) {
		file := filepath.Join(dir, program)
		if !filepath.IsAbs(dir) || !isExecutable(file) {
			continue
		}
		if real, err := filepath.EvalSymlinks(file); err == nil && !isWithin(o.Root, real) && !isWithin(o.Root, dir) {
			return file, ""
		}
		inside = file
	}
	return "", inside
}

func isExecutable(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().IsRegular() && info.Mode().Perm()&0o111 != 0
}

// kindSetting is a server in the user's settings.
type kindSetting struct {
	Command     jsonx.StringList  `json:"command"`
	Args        []string          `json:"args"`
	Files       map[string]string `json:"files"`
	RootMarkers []string          `json:"root_markers"`
	Init        any               `json:"init"`
	Settings    map[string]any    `json:"settings"`
	Env         map[string]string `json:"env"`
	Disabled    bool              `json:"disabled"`
}

// ParseKind returns a Kind from a user's setting. If name is a known server or language ("gopls", "go",
// "py"), its values are the defaults; any other must list its files. The setting is an object with any
// of command (a string or a list), args, files (endings and language ids), root_markers, init, settings,
// env and disabled.
func ParseKind(name string, raw json.RawMessage) (Kind, error) {
	var c kindSetting
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&c); err != nil {
		return Kind{}, message.Errorf("language server %s: %w", name, jsonx.ExplainMismatch(err, c))
	}
	k := findBuiltin(name)
	if len(c.Command) > 0 {
		k.Name, k.Command, k.Init, k.Settings, k.initOptions = c.Command[0], slices.Clone(c.Command), nil, nil, nil
		k.Install, k.accepts, k.requestDiagnostics, k.publishesComplete, k.announcesIdle, k.limitation = "", nil, nil, false,
			false, ""
	}
	k.Command = append(k.Command, c.Args...)
	if c.Files != nil {
		k.Files = c.Files
	}
	if c.RootMarkers != nil {
		k.Markers = [][]string{c.RootMarkers}
	}
	if c.Init != nil {
		k.Init, k.initOptions = c.Init, nil
	}
	if c.Settings != nil {
		k.Settings = c.Settings
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		k.Env = append(k.Env, name+"="+c.Env[name])
	}
	if c.Disabled {
		k.Command = nil
	}
	switch {
	case len(k.Files) == 0:
		return Kind{}, message.Errorf("language server %s: list the files it serves under files", name)
	case len(k.Command) == 0 && !c.Disabled:
		return Kind{}, message.Errorf("language server %s: command is missing", name)
	case len(k.Command) > 0 && k.Command[0] == "":
		return Kind{}, errors.New("language server " + name + ": command is empty")
	}
	return k, nil
}

// findBuiltin returns the server with this name, or the first for a language with this name, id or file
// ending. Otherwise it returns the zero Kind.
func findBuiltin(name string) Kind {
	at := slices.IndexFunc(builtinKinds, func(k Kind) bool { return k.Name == name })
	if at < 0 {
		at = slices.IndexFunc(builtinKinds, func(k Kind) bool {
			_, ending := k.Files["."+name]
			return ending || strings.EqualFold(k.Language, name) || slices.Contains(slices.Collect(maps.Values(k.Files)), name)
		})
	}
	if at < 0 {
		return Kind{Name: name, Language: name}
	}
	k := builtinKinds[at]
	k.Command = slices.Clone(k.Command)
	return k
}
