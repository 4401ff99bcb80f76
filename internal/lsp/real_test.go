//go:build unix

package lsp

import (
	"cmp"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"coder/internal/lsp/lsptest"
)

// project is a small project in one language: files with a mistake in one of
// them, and a name that is defined and used.
type project struct {
	program string // that must be installed
	needs   string // so must this, if it is set
	files   map[string]string
	asked   string // the file to ask about
	mistake string // in the message about it; "" if the server does not look for any
	fixed   string // the file without the mistake
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
		asked: "b.py", mistake: "missing", fixed: "from a import twice\n\ns = \"😀é\" + str(twice(1))\n",
		use: "str(tw", define: "a.py:twice(", hover: "Doubles n",
	},
	"typescript": {
		program: "typescript-language-server", needs: "tsserver",
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
	for name, p := range projects {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, program := range []string{p.program, cmp.Or(p.needs, p.program)} {
				if _, err := exec.LookPath(program); err != nil {
					t.Skipf("%s is not installed", program)
				}
			}
			ask(t, p)
		})
	}
}

// ask takes a server through everything we can ask it.
func ask(t *testing.T, p project) {
	dir := t.TempDir()
	for name, text := range p.files {
		put(t, filepath.Join(dir, name), text)
	}
	only := onlyProgram(t, p.program)
	pool := New(Options{Root: dir, Env: append(os.Environ(), "PATH="+only)})
	t.Cleanup(func() { pool.Close() })
	text := p.files[p.asked]

	diagnosed(t, pool, p.asked, text, p.mistake, true)
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
	diagnosed(t, pool, p.asked, p.fixed, p.mistake, false)
}

// diagnosed asks until the server says, or no longer says, that there is a
// mistake. It may take longer than a call waits if the machine has much to do.
func diagnosed(t *testing.T, pool *Pool, name, text, mistake string, want bool) {
	t.Helper()
	var r Report
	for range 40 {
		var err error
		if r, err = pool.Diagnose(t.Context(), name, []byte(text)); err != nil {
			t.Fatalf("diagnose: %v", err)
		}
		if !r.Pending && (mistake == "" || mentions(r, name, mistake) == want) {
			return
		}
		time.Sleep(lsptest.Pause)
	}
	t.Errorf("diagnostics: %+v; want %q there: %v", r, mistake, want)
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

// onlyProgram is a PATH in which of all servers only the given one is found.
func onlyProgram(t *testing.T, program string) string {
	t.Helper()
	full, err := exec.LookPath(program)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(full, filepath.Join(dir, program)); err != nil {
		t.Fatal(err)
	}
	rest := "/usr/local/bin:/usr/bin:/bin"
	for _, helper := range []string{"go", "node", "python3", "tsserver"} {
		if file, err := exec.LookPath(helper); err == nil {
			_ = os.Symlink(file, filepath.Join(dir, helper))
		}
	}
	return dir + ":" + rest
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
	return Position{Line: len(lines) - 1, Character: UnitsAt(last, len([]rune(last)))}
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
