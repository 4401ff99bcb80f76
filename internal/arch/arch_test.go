// Package arch holds no code: its tests are the plan of the house.
package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// plan lists, floor by floor from the ground up, every package and what it may
// import from this module. A package missing here is a failed test: adding one
// is a decision, and this table is where it is written down.
var plan = []struct {
	pkg    string
	allows string
}{
	// words
	{"wire", ""},
	{"chat", "wire"},
	{"show", ""},
	{"uip", "show wire"},
	{"event", "chat show uip wire"},
	{"task", "event uip"},
	{"textsafe", ""},
	{"whole", ""},
	{"authkey", "whole"},
	{"secret", ""},
	{"nearest", ""},
	{"repofile", "secret"},

	// contracts, and the suites that hold implementations to them
	{"provider", "chat"},
	{"provider/providertest", "chat provider"},
	{"tool", "chat event show wire"},
	{"tool/dialect", ""},
	{"tool/tooltest", "tool"},
	{"policy", "chat tool"},
	{"session", ""},
	{"session/sessiontest", "session"},
	{"event/eventtest", "chat event show uip"},
	{"audit", "event"},
	{"conversation", "chat event"},
	{"seal", "authkey chat event wire"},

	// organs
	{"timeline", "event"},
	{"broker", "event uip"},
	{"inbox", "authkey uip whole wire"},
	{"toolrun", "chat event policy show tool tool/dialect uip wire"},
	{"prompt", "chat"},
	{"compact", "chat event"},
	{"complexity", ""},
	{"verify", ""},
	{"models", ""},
	{"mdfile", ""},
	{"skill", "mdfile"},
	{"command", "mdfile"},
	{"export", "chat event session show textsafe uip"},
	{"gitsafe", ""},
	{"policy/risk", "gitsafe policy tool"},
	{"policy/rule", "policy policy/risk secret tool"},
	{"profile", "policy tool"},
	{"agent", "mdfile policy tool"},
	{"trust", "whole repofile"},
	{"judge", "gitsafe policy policy/risk policy/rule profile secret show tool whole repofile"},
	{"workspace", "nearest repofile"},
	{"shell", "textsafe"},
	{"patch", ""},
	{"sandbox", "repofile"},
	{"provider/openai", "chat provider"},
	{"provider/textcalls", "chat provider"},
	{"provider/scripted", "chat provider"},
	{"provider/faultserver", "provider"},
	{"undo/blob", "whole"},
	{"undo/gitindex", ""},
	{"undo", "event repofile tool toolrun undo/blob undo/gitindex workspace"},
	{"lsp/lsptest", ""},
	{"lsp", "repofile textsafe"},
	{"codeindex", "workspace"},
	{"mention", "workspace"},
	{"toolbox/files", "chat patch show tool workspace"},
	{"toolbox/search", "show tool workspace"},
	{"toolbox/exec", "secret shell show tool workspace"},
	{"confine", "policy/risk sandbox secret tool toolbox/exec"},
	{"toolbox/git", "gitsafe shell show textsafe tool workspace repofile"},
	{"toolbox/web", "chat show textsafe tool"},
	{"toolbox/code", "lsp show textsafe tool wire workspace"},
	{"toolbox/lookup", "codeindex show tool workspace"},
	{"toolbox/plan", "event show tool uip"},
	{"toolbox/agent", "show tool uip"},
	{"toolbox/skills", "event show skill tool"},
	{"store/mem", "event session"},
	{"store/jsonl", "audit authkey event session wire repofile whole"},
	{"store/jsonl/faultdisk", "store/jsonl undo/blob"},
	{"store/failover", "event session"},

	// mind
	{"orchestrator", "chat command compact complexity conversation event mention nearest profile prompt provider skill tool toolrun uip verify wire"},
	{"supervisor", "authkey broker chat conversation event orchestrator profile provider seal session show task textsafe timeline tool toolrun uip undo wire"},

	// faces
	{"render/rendertest", "chat event show uip"},
	{"render/jsonl", "chat event show uip wire"},
	{"render/streamjson", "chat event wire"},
	{"render/plain", "chat event textsafe"},
	{"render/term/ink", ""},
	{"render/term/syntax", "render/term/ink"},
	{"render/term/markdown", "render/term/ink render/term/syntax"},
	{"render/term", "chat event render/term/ink render/term/markdown render/term/syntax show textsafe uip"},
	{"i18n", ""},
	{"stdio", ""},
	{"tty/cells", ""},
	{"lineedit", "textsafe tty/cells"},
	{"tty", "lineedit tty/cells"},
	{"repl", "event lineedit render/term render/term/ink stdio textsafe tty tty/cells uip"},

	// wiring
	{"config", "nearest repofile"},
	{"slash", "chat compact config event orchestrator patch profile prompt session show skill textsafe toolbox/git trust undo whole"},
	{"app", "authkey broker config event orchestrator policy policy/risk policy/rule profile prompt provider provider/openai provider/scripted " +
		"provider/textcalls render/jsonl render/plain render/streamjson session store/failover store/jsonl store/mem " +
		"supervisor tool toolbox/code toolbox/exec toolbox/files toolbox/git toolbox/lookup toolbox/plan toolbox/search " +
		"toolbox/web toolrun uip undo workspace codeindex lsp show task textsafe timeline trust whole judge confine shell wire audit chat export models patch sandbox i18n lineedit render/term render/term/ink repl seal stdio inbox tty command mdfile skill toolbox/skills agent toolbox/agent mention authkey undo/gitindex repofile secret nearest slash"},
	{"arch", ""},
}

func TestEveryPackageIsInThePlanAndKeepsToIt(t *testing.T) {
	floor := make(map[string]int)
	for i, p := range plan {
		if _, twice := floor[p.pkg]; twice {
			t.Errorf("plan: %s stands twice", p.pkg)
		}
		floor[p.pkg] = i
		for _, dep := range strings.Fields(p.allows) {
			if j, ok := floor[dep]; !ok || j >= i {
				t.Errorf("plan: %s allows %s, which is not below it", p.pkg, dep)
			}
		}
	}
	for _, got := range list(t) {
		i, ok := floor[got.name]
		if !ok {
			t.Errorf("package %s is not in the plan", got.name)
			continue
		}
		if got.docs != 1 {
			t.Errorf("package %s has %d package comments, want one", got.name, got.docs)
		}
		for dep := range got.imports {
			if !slices.Contains(strings.Fields(plan[i].allows), dep) {
				t.Errorf("%s imports %s, which the plan does not allow", got.name, dep)
			}
		}
		delete(floor, got.name)
	}
	for name := range floor {
		t.Errorf("plan: there is no package %s", name)
	}
}

// Names that say nothing about what a package is for.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers", "shared", "misc", "base", "manager", "lib"}

func TestPackagesAreNamedForWhatTheyHold(t *testing.T) {
	for _, p := range list(t) {
		for part := range strings.SplitSeq(p.name, "/") {
			if slices.Contains(emptyNames, part) {
				t.Errorf("package %s: %q is not a name", p.name, part)
			}
		}
	}
}

// The world is read in one place, so that everything else can be tested
// without it. Each row names a call and the packages that may make it.
var worldly = []struct{ call, allowed string }{
	{"os.Getenv", "app"},
	{"os.Environ", "app"},
	{"os.Getwd", "app"},
	{"os.Exit", ""},
	{"fmt.Print(", ""},
	{"fmt.Printf(", ""},
	{"fmt.Println(", ""},
	{"http.DefaultClient", ""},
}

func TestOnlyTheWiringReadsTheWorld(t *testing.T) {
	for _, p := range list(t) {
		for _, w := range worldly {
			if slices.Contains(strings.Fields(w.allowed), p.name) || strings.HasSuffix(p.name, "test") {
				continue
			}
			for file, text := range p.files {
				if strings.Contains(text, w.call) {
					t.Errorf("%s uses %s", file, strings.TrimSuffix(w.call, "("))
				}
			}
		}
	}
}

// openers are the calls that open a file or list a folder by its name.
var openers = map[string][]string{
	"os":       {"Open", "OpenFile", "ReadFile", "ReadDir", "OpenRoot", "OpenInRoot", "DirFS", "Create", "WriteFile", "CopyFS"},
	"filepath": {"Walk", "WalkDir", "Glob"},
	"unix":     {"Open", "Openat", "Openat2"},
	"syscall":  {"Open", "Openat"},
	"ioutil":   {"ReadFile", "ReadDir", "WriteFile"},
}

// mayOpen are the files and packages of the house that open others themselves, and why
// they may. All else reads through repofile or the workspace: what lies under a
// name was chosen by whoever made the repository.
var mayOpen = map[string]string{
	"repofile/repofile.go":            "this is the way: the person's own files",
	"repofile/open_unix.go":           "this is the way: without following links",
	"repofile/open_other.go":          "this is the way: where there is no other",
	"workspace/workspace.go":          "the handle that everything in a workspace goes through",
	"app/authority.go":                "lists its own folders, which is never waited for",
	"workspace/watch_linux.go":        "asks the kernel about mounts and watches",
	"workspace/batch.go":              "many files of one directory, without links, pipes or waiting",
	"undo/blob/blob.go":               "the handle of its own folder; regular files only, without waiting",
	"arch/arch_test.go":               "reads the house itself",
	"arch/settings_test.go":           "reads the house itself",
	"whole/whole.go":                  "handles of our own directories, never what is in them; no pipe is waited for",
	"inbox/inbox.go":                  "letters in a folder of the person's own, bounded, without links or waiting",
	"authkey/authkey.go":              "a file of the person's own that must not be a link",
	"store/jsonl/":                    "its own logs and snapshots: regular files, without links or waiting",
	"app/prunecmd.go":                 "lists its own folders, which is never waited for",
	"app/leftover.go":                 "lists its own folders, which is never waited for",
	"workspace/beneath_linux.go":      "directories of the workspace, without links, in one call",
	"workspace/place_linux.go":        "makes a file without a name in a directory that is open",
	"app/sessions.go":                 "lists the folders of sessions, which is never waited for",
	"app/headless.go":                 "makes a new file that the person named",
	"app/hands.go":                    "makes a new file for a plan",
	"app/demo.go":                     "writes into a folder that it has just made",
	"app/watchcmd.go":                 "the note in a lock, bounded, without links or waiting; asks the kernel who locks what",
	"app/terminal.go":                 "writes into a folder that it has just made",
	"app/started_linux.go":            "its own memory, by way of the kernel",
	"sandbox/attend_linux.go":         "asks the kernel about processes",
	"sandbox/namespaces_linux.go":     "asks the kernel what it allows",
	"sandbox/landlock_linux.go":       "lists folders, which is never waited for",
	"sandbox/sockets.go":              "lists folders, which is never waited for, and asks the kernel about sockets",
	"confine/hide.go":                 "tells a certificate from a key: what counts as a secret by its name, regular, bounded, without waiting",
	"sandbox/places.go":               "makes a file to see whether that can be done",
	"sandbox/mount_linux.go":          "mount points in a namespace of its own",
	"sandbox/protected.go":            "lists folders of submodules, which is never waited for",
	"judge/world.go":                  "lists folders, which is never waited for",
	"lsp/watch.go":                    "lists folders, which is never waited for",
	"lsp/lsptest/lsptest.go":          "a server for tests",
	"shell/":                          "asks the kernel about processes",
	"render/rendertest/rendertest.go": "golden files of tests",
	"tool/tooltest/tooltest.go":       "folders of tests",
}

func TestWhatTheProgramReadsByItselfIsOpenedInOneWay(t *testing.T) {
	used := make(map[string]bool)
	for _, p := range list(t) {
		for file := range p.files {
			name := filepath.ToSlash(strings.TrimPrefix(file, ".."+string(filepath.Separator)))
			for _, call := range usesIn(t, file, openers) {
				if mayOpen[name] == "" {
					name = path.Dir(name) + "/" // all of the package may
				}
				if used[name] = true; mayOpen[name] == "" {
					t.Errorf("%s uses %s: use repofile, or say in mayOpen why not", name, call)
				}
			}
		}
	}
	for name := range mayOpen {
		if !used[name] {
			t.Errorf("%s opens nothing any more: strike it from mayOpen", name)
		}
	}
}

// temporary is why a file may make temporary files: who removes what it leaves
// if the program is killed.
var temporary = map[string]string{
	"authkey/authkey.go":          "in our home, swept at the start",
	"whole/whole.go":              "beside what is ours, or in a folder of ours: swept at the start",
	"app/terminal.go":             "in our home, swept at the start",
	"app/demo.go":                 "the person is told where it is, and it stays",
	"event/eventtest/simulate.go": "for tests",
}

// TestTemporaryFilesAreSwept: whatever makes files that are to go says who
// removes them if it cannot.
func TestTemporaryFilesAreSwept(t *testing.T) {
	makers := map[string][]string{"os": {"CreateTemp", "MkdirTemp"}, "ioutil": {"TempFile", "TempDir"}}
	used := make(map[string]bool)
	for _, p := range list(t) {
		for file := range p.files {
			name := filepath.ToSlash(strings.TrimPrefix(file, ".."+string(filepath.Separator)))
			for _, call := range usesIn(t, file, makers) {
				if used[name] = true; temporary[name] == "" {
					t.Errorf("%s uses %s: write with whole or workspace, or say in temporary who sweeps it", name, call)
				}
			}
		}
	}
	for name := range temporary {
		if !used[name] {
			t.Errorf("%s makes nothing any more: strike it from temporary", name)
		}
	}
}

// usesIn lists the uses of functions in a file, called or handed on.
func usesIn(t *testing.T, file string, functions map[string][]string) (calls []string) {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return true
		}
		if pkg, ok := s.X.(*ast.Ident); ok && slices.Contains(functions[pkg.Name], s.Sel.Name) {
			calls = append(calls, pkg.Name+"."+s.Sel.Name)
		}
		return true
	})
	return calls
}

type pkg struct {
	name    string
	docs    int
	imports map[string]bool
	files   map[string]string
}

// list reads the tree itself rather than asking "go list": the go command
// then knows which files this test depends on, and never serves a stale pass.
func list(t *testing.T) (pkgs []pkg) {
	t.Helper()
	err := filepath.WalkDir("..", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == "testdata" {
			return filepath.SkipDir
		}
		p := pkg{
			name:    filepath.ToSlash(strings.TrimPrefix(dir, ".."+string(filepath.Separator))),
			imports: make(map[string]bool), files: make(map[string]string),
		}
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return err
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") && d.Name() != "arch" {
				continue
			}
			if err := p.read(name); err != nil {
				return err
			}
		}
		if len(p.files) > 0 {
			pkgs = append(pkgs, p)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return pkgs
}

func (p *pkg) read(name string) error {
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	f, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ImportsOnly|parser.ParseComments)
	if err != nil {
		return err
	}
	p.files[name] = string(text)
	if p.name == "arch" {
		p.files[name] = "" // it names what it forbids
	}
	if f.Doc.Text() != "" {
		p.docs++
	}
	for _, spec := range f.Imports {
		if dep, ok := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), "coder/internal/"); ok {
			p.imports[dep] = true
		}
	}
	return nil
}
