package lsp

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coder/testkit/lsptest"
)

// project is a small project in one language: files with a mistake in one of
// them, and a name that is defined and used.
type project struct {
	program string // that must be installed
	files   map[string]string
	asked   string // the file to ask about
	mistake string // in the message about it; "" if the server does not look for any
	fixed   string // the file without the mistake
	unsure  bool   // the server never tells for certain that there is none
	use     string // the text at whose end the name is used
	define  string // the place of its definition, path and text
	hover   string // said about it
}

var projects = map[string]project{
	"go": {
		program: "gopls",
		files: map[string]string{
			"go.mod": "module example.test/m\n\ngo 1.21\n",
			"a.go":   "package m\n\n// Twice doubles n.\nfunc Twice(n int) int { return 2 * n }\n",
			"b.go":   "package m\n\nvar s = \"😀é\" + string(rune(Twice(1)))\n\nvar x int = \"no\"\n",
		},
		asked: "b.go", mistake: "cannot use", fixed: "package m\n\nvar s = \"😀é\" + string(rune(Twice(1)))\n",
		use: "string(rune(Tw", define: "a.go:Twice(", hover: "doubles n",
	},
	"python": {
		program: "pyright-langserver",
		files: map[string]string{
			"pyproject.toml": "[project]\nname = \"m\"\nversion = \"1\"\n",
			"a.py":           "def twice(n: int) -> int:\n    \"\"\"Doubles n.\"\"\"\n    return 2 * n\n",
			"b.py":           "from a import twice\n\ns = \"😀é\" + str(twice(1))\nx: int = \"no\"\n",
		},
		asked: "b.py", mistake: "int", fixed: "from a import twice\n\ns = \"😀é\" + str(twice(1))\n",
		use: "str(tw", define: "a.py:twice(", hover: "Doubles n",
	},
	"python with pylsp": {
		program: "pylsp",
		files: map[string]string{
			"pyproject.toml": "[project]\nname = \"m\"\nversion = \"1\"\n",
			"a.py":           "def twice(n: int) -> int:\n    \"\"\"Doubles n.\"\"\"\n    return 2 * n\n",
			"b.py":           "from a import twice\n\ns = \"😀é\" + str(twice(1))\ny = missing\n",
		},
		asked: "b.py", mistake: "missing", fixed: "from a import twice\n\ns = \"😀é\" + str(twice(1))\n", unsure: true,
		use: "str(tw", define: "a.py:twice(", hover: "Doubles n",
	},
	"typescript": {
		program: "typescript-language-server",
		files: map[string]string{
			"tsconfig.json": "{\"compilerOptions\":{\"strict\":true}}\n",
			"a.ts":          "/** Doubles n. */\nexport function twice(n: number): number { return 2 * n }\n",
			"b.ts":          "import { twice } from \"./a\"\nexport const s = \"😀é\" + String(twice(1))\nexport const x: number = \"no\"\n",
		},
		asked: "b.ts", mistake: "not assignable", fixed: "import { twice } from \"./a\"\nexport const s = \"😀é\" + String(twice(1))\n",
		use: "String(tw", define: "a.ts:twice(", hover: "Doubles n",
	},
	"shell": {
		program: "bash-language-server",
		files: map[string]string{
			"a.sh": "#!/bin/bash\n# Doubles n.\ntwice() { echo $((2 * $1)); }\ns=\"😀é\"; twice 1\n",
		},
		asked: "a.sh", use: "; tw", define: "a.sh:twice(", hover: "Doubles n",
	},
	"typescript 7": {
		program: "tsc",
		files: map[string]string{
			"tsconfig.json": "{\"compilerOptions\":{\"strict\":true}}\n",
			"a.ts":          "/** Doubles n. */\nexport function twice(n: number): number { return 2 * n }\n",
			"b.ts":          "import { twice } from \"./a\"\nexport const s = \"😀é\" + String(twice(1))\nexport const x: number = \"no\"\n",
		},
		asked: "b.ts", mistake: "not assignable", fixed: "import { twice } from \"./a\"\nexport const s = \"😀é\" + String(twice(1))\n",
		use: "String(tw", define: "a.ts:twice(", hover: "Doubles n",
	},
	"rust": {
		program: "rust-analyzer",
		files: map[string]string{
			"Cargo.toml": "[package]\nname = \"m\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
			"Cargo.lock": "version = 3\n\n[[package]]\nname = \"m\"\nversion = \"0.1.0\"\n",
			"src/lib.rs": "pub mod a;\npub mod b;\n",
			"src/a.rs":   "/// Doubles n.\npub fn twice(n: i32) -> i32 { 2 * n }\n",
			"src/b.rs":   "use crate::a::twice;\n\npub const S: &str = \"😀é\"; pub fn f() -> i32 { twice(1) }\npub fn x() -> i32 { \"no\" }\n",
		},
		asked: "src/b.rs", mistake: "i32", fixed: "use crate::a::twice;\n\npub const S: &str = \"😀é\"; pub fn f() -> i32 { twice(1) }\n",
		use: "i32 { tw", define: "src/a.rs:twice(", hover: "Doubles n",
	},
	"c": {
		program: "clangd",
		files: map[string]string{
			"a.h": "// Doubles n.\nstatic inline int twice(int n) { return 2 * n; }\n",
			"b.c": "#include \"a.h\"\n\nconst char *s = \"😀é\"; int f(void) { return twice(1); }\nint x = missing;\n",
		},
		asked: "b.c", mistake: "missing", fixed: "#include \"a.h\"\n\nconst char *s = \"😀é\"; int f(void) { return twice(1); }\n",
		use: "return tw", define: "a.h:twice(", hover: "Doubles n",
	},
}

func TestRealServers(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for name, p := range projects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ask(t, p)
		})
	}
}

// pool makes a pool for a copy of the project, with the project's server and no
// other, or skips the test if that is not installed.
func (p project) pool(t *testing.T) (*Pool, string) {
	t.Helper()
	dir := t.TempDir()
	for name, text := range p.files {
		put(t, filepath.Join(dir, name), text)
	}
	o := Options{Root: dir, Env: append(os.Environ(), "PATH="+onlyProgram(t, p.program)), Cache: t.TempDir()}
	for _, k := range builtinKinds {
		if k.Command[0] == p.program {
			o.Servers = append(o.Servers, k) // before any other there may be
		}
	}
	if _, command, err := o.kindFor(p.asked); err != nil {
		t.Skip(err)
	} else if filepath.Base(command[0]) != p.program {
		t.Skipf("%s is not installed, or cannot serve", p.program)
	} else if p.program == "rust-analyzer" && exec.Command(command[0], "--version").Run() != nil {
		t.Skip("rust-analyzer is only a launcher here: rustup component add rust-analyzer")
	}
	pool := New(o)
	t.Cleanup(func() { pool.Close() })
	return pool, dir
}

// TestBrokenCodeIsNeverCalledFine asks freshly started servers about a file that
// is wrong, at once and after edits: they say what is wrong, or that it is not
// known yet, but never that nothing is.
func TestBrokenCodeIsNeverCalledFine(t *testing.T) {
	if testing.Short() {
		t.Skip("takes long")
	}
	for name, p := range projects {
		if p.mistake == "" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, dir := p.pool(t)
			write := func(text string) {
				t.Helper()
				put(t, filepath.Join(dir, p.asked), text)
				r, err := pool.Diagnose(t.Context(), p.asked, []byte(text))
				if err != nil {
					t.Fatal(err)
				}
				if wrong := text != p.fixed; wrong && len(r.Diagnostics) == 0 && !r.Pending {
					t.Errorf("broken code is said to be fine: %+v", r)
				}
				t.Logf("%d pending %v %s %v", len(r.Diagnostics), r.Pending, r.Note, r.Diagnostics)
			}
			broken := p.files[p.asked]
			write(broken)
			write(broken) // what was said of the same text is not made better by asking again
			write(p.fixed)
			write(broken + "\n")
			other := filepath.Join(filepath.Dir(p.asked), "more"+filepath.Ext(p.asked))
			put(t, filepath.Join(dir, other), broken)
			r, err := pool.Diagnose(t.Context(), other, []byte(broken))
			if err != nil || len(r.Diagnostics) == 0 && !r.Pending && p.program != "rust-analyzer" { // which does not look at what no crate has
				t.Errorf("of a new file: %+v, %v", r, err)
			}
		})
	}
}

// ask takes a server through everything we can ask it.
func ask(t *testing.T, p project) {
	pool, dir := p.pool(t)
	text := p.files[p.asked]

	if p.mistake != "" {
		diagnosed(t, pool, p, text, true)
	} else if r, err := pool.Diagnose(t.Context(), p.asked, []byte(text)); err != nil || len(r.Diagnostics) == 0 && !r.Pending {
		t.Errorf("a server that looks for no mistakes knows that there are none: %+v, %v", r, err)
	}
	at := after(t, text, p.use)
	places, err := pool.Definition(t.Context(), p.asked, []byte(text), at)
	if err != nil || len(places) == 0 {
		t.Fatalf("definition: %v, %v", places, err)
	}
	file, defined, _ := strings.Cut(p.define, ":")
	if want := after(t, p.files[file], defined); places[0].Path != file || places[0].Range.Start.Line != want.Line {
		t.Errorf("definition: %+v, want line %d of %s", places, want.Line, file)
	}
	words, err := pool.Hover(t.Context(), p.asked, []byte(text), at)
	if err != nil || !strings.Contains(words, p.hover) {
		t.Errorf("hover: %q, %v", words, err)
	}
	uses, err := pool.References(t.Context(), p.asked, []byte(text), at)
	if err != nil || !has(uses, p.asked, at.Line) {
		t.Errorf("references: %+v, %v", uses, err)
	}
	if p.mistake == "" {
		return
	}
	put(t, filepath.Join(dir, p.asked), p.fixed)
	diagnosed(t, pool, p, p.fixed, false)
}

// diagnosed asks until the server says, or no longer says, that there is a
// mistake. It may take longer than a call waits if the machine has much to do.
func diagnosed(t *testing.T, pool *Pool, p project, text string, want bool) {
	t.Helper()
	var r Report
	for range 40 {
		var err error
		if r, err = pool.Diagnose(t.Context(), p.asked, []byte(text)); err != nil {
			t.Fatalf("diagnose: %v", err)
		}
		if r.Pending == (p.unsure && !want) && mentions(r, p.asked, p.mistake) == want {
			return
		}
		time.Sleep(lsptest.Pause)
	}
	t.Errorf("diagnostics: %+v; want %q there: %v", r, p.mistake, want)
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// onlyProgram is a PATH in which of all servers only the given one is found, if
// it is installed: where make tools puts those that are not for the PATH, or on
// it.
func onlyProgram(t *testing.T, program string) string {
	t.Helper()
	dir := t.TempDir()
	home, _ := os.UserHomeDir()
	for _, own := range []string{"typescript7", "pylsp"} {
		if file := filepath.Join(home, ".local/share", own, "bin", program); home != "" && exec.Command(file, "--version").Run() == nil {
			_ = os.Symlink(file, filepath.Join(dir, program))
		}
	}
	for _, name := range []string{program, "go", "node", "python3", "tsserver", "cargo", "rustc"} {
		if file, err := exec.LookPath(name); err == nil {
			_ = os.Symlink(file, filepath.Join(dir, name))
		}
	}
	return dir + ":/bin"
}

// after is the position just behind the first occurrence of part.
func after(t *testing.T, text, part string) Position {
	t.Helper()
	before, _, ok := strings.Cut(text, part)
	if !ok {
		t.Fatalf("%q is not in %q", part, text)
	}
	before += part
	lines := strings.Split(before, "\n")
	last := lines[len(lines)-1]
	return Position{Line: len(lines) - 1, Character: UTF16Offset(last, len([]rune(last)))}
}

func mentions(r Report, path, word string) bool {
	for _, d := range r.Diagnostics {
		if d.Path == path && strings.Contains(d.Message, word) {
			return true
		}
	}
	return false
}

func has(list []Location, path string, line int) bool {
	for _, l := range list {
		if l.Path == path && l.Range.Start.Line == line {
			return true
		}
	}
	return false
}
