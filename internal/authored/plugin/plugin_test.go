package plugin_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"coder/internal/authored/plugin"
)

// folder is a folder with files in it.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "demo")
	for name, text := range files {
		writeEntry(t, filepath.Join(dir, name), text)
	}
	return dir
}

func writeEntry(t *testing.T, file, text string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(file), 0o755))
	must(t, os.WriteFile(file, []byte(text), 0o644))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const manifest = ".claude-plugin/plugin.json"

func TestWhatIsInAFolderIsFound(t *testing.T) {
	for name, tt := range map[string]struct {
		files                                    map[string]string
		commands, skills, agents, hooks, servers int
	}{
		"the usual places": {map[string]string{
			manifest: `{"name": "demo"}`, "commands/a.md": "x", "skills/s/SKILL.md": "x", "agents/r.md": "x",
			"hooks/hooks.json": `{"hooks": {}}`, ".mcp.json": `{}`,
		}, 1, 1, 1, 1, 1},
		"other places beside them": {map[string]string{
			manifest:        `{"name": "demo", "commands": ["./extra", "./one.md"], "skills": "./s", "agents": "./r.md", "hooks": "./h.json", "mcpServers": "./m.json"}`,
			"commands/a.md": "x", "extra/b.md": "x", "one.md": "x", "s/SKILL.md": "x", "r.md": "x", "h.json": `{"Stop": []}`, "m.json": `{"mcpServers": {}}`,
		}, 3, 1, 1, 1, 1},
		"the things themselves": {map[string]string{
			manifest: "\xef\xbb\xbf" + `{"name": "demo", "hooks": {"Stop": []}, "mcpServers": {"x": {"command": "y"}}}`,
		}, 0, 0, 0, 1, 1},
		"named twice":         {map[string]string{manifest: `{"name": "demo", "commands": "./commands/", "hooks": "./hooks/hooks.json"}`, "commands/a.md": "x", "hooks/hooks.json": `{}`}, 1, 0, 0, 1, 0},
		"without a manifest":  {map[string]string{"commands/a.md": "x"}, 1, 0, 0, 0, 0},
		"a manifest and more": {map[string]string{manifest: `{"name": "demo", "keywords": ["x"], "author": "me"}`}, 0, 0, 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := plugin.Read(folder(t, tt.files))
			if err != nil || p.Name != "demo" {
				t.Fatalf("%+v, %v", p, err)
			}
			if len(p.Commands) != tt.commands || len(p.Skills) != tt.skills || len(p.Agents) != tt.agents || len(p.Hooks) != tt.hooks || len(p.Servers) != tt.servers {
				t.Errorf("%d commands, %d skills, %d agents, %d hooks, %d servers", len(p.Commands), len(p.Skills), len(p.Agents), len(p.Hooks), len(p.Servers))
			}
		})
	}
}

func TestWhatIsNoPluginIsTold(t *testing.T) {
	for name, tt := range map[string]struct {
		files map[string]string
		want  string
	}{
		"nothing":             {map[string]string{"x": "y"}, "it has no .claude-plugin/plugin.json"},
		"a list of plugins":   {map[string]string{".claude-plugin/marketplace.json": "{}"}, "a collection of plugins"},
		"no JSON":             {map[string]string{manifest: "name: demo"}, "is invalid"},
		"no name":             {map[string]string{manifest: "{}"}, `"" is not a valid plugin name`},
		"a name to imitate":   {map[string]string{manifest: `{"name": "dеmo"}`}, "is not a valid plugin name"},
		"a name with a slash": {map[string]string{manifest: `{"name": "a/b"}`}, "is not a valid plugin name"},
		"a name with escapes": {map[string]string{manifest: `{"name": "a\u001b[2J"}`}, `"a\x1b[2J" is not a valid plugin name`},
		"a long name":         {map[string]string{manifest: `{"name": "` + strings.Repeat("a", 65) + `"}`}, "is not a valid plugin name"},
		"a path out":          {map[string]string{manifest: `{"name": "a", "agents": "/etc"}`}, `agents: "/etc" leads out`},
		"a path into git":     {map[string]string{manifest: `{"name": "a", "hooks": "./.git/x.json"}`}, `hooks: "./.git/x.json" leads out`},
		"a path to nothing":   {map[string]string{manifest: `{"name": "a", "skills": "./none"}`}, "none: no such file or directory"},
		"a path of no sort":   {map[string]string{manifest: `{"name": "a", "commands": 5}`}, "is invalid"},
		"hooks of no sort":    {map[string]string{manifest: `{"name": "a", "hooks": 5}`}, "neither a path nor an object"},
		"hooks of no JSON":    {map[string]string{"hooks/hooks.json": "["}, "hooks/hooks.json is invalid"},
		"a long manifest":     {map[string]string{manifest: strings.Repeat(" ", 1<<20) + "{}"}, "too large"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := plugin.Read(folder(t, tt.files)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
	if _, err := plugin.Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a folder that is not there was read")
	}
}

// kept is a book, and a plugin of which it was written down.
func kept(t *testing.T, dir string, later time.Duration) plugin.Book {
	t.Helper()
	b := plugin.Book{Dir: filepath.Join(t.TempDir(), "plugins"), Now: func() time.Time { return time.Now().Add(later) }}
	p, held, err := b.Inspect(dir)
	must(t, err)
	must(t, b.Add(p, held, plugin.Origin{}))
	return b
}

func loaded(t *testing.T, b plugin.Book) plugin.AddedPlugin {
	t.Helper()
	all, err := b.Load()
	if err != nil || len(all) != 1 {
		t.Fatalf("%v, %v", all, err)
	}
	return all[0]
}

func TestAnyChangeTurnsAPluginOff(t *testing.T) {
	long := strings.Repeat("x", 100)
	for name, change := range map[string]func(t *testing.T, dir string){
		"a file is written": func(t *testing.T, dir string) { writeEntry(t, filepath.Join(dir, "run.sh"), "other") },
		"a file is added":   func(t *testing.T, dir string) { writeEntry(t, filepath.Join(dir, "lib", "new.py"), "") },
		"a file is removed": func(t *testing.T, dir string) { must(t, os.Remove(filepath.Join(dir, "run.sh"))) },
		"a file is renamed": func(t *testing.T, dir string) {
			must(t, os.Rename(filepath.Join(dir, "run.sh"), filepath.Join(dir, "ran.sh")))
		},
		"a file may be run": func(t *testing.T, dir string) { must(t, os.Chmod(filepath.Join(dir, "run.sh"), 0o755)) },
		"a link is turned":  func(t *testing.T, dir string) { link(t, dir, "lib/b") },
		"the manifest is new": func(t *testing.T, dir string) {
			writeEntry(t, filepath.Join(dir, manifest), `{"name": "demo", "version": "2"}`)
		},
		"the time is put back, the length kept": func(t *testing.T, dir string) {
			file := filepath.Join(dir, "run.sh")
			before, err := os.Stat(file)
			must(t, err)
			f, err := os.OpenFile(file, os.O_WRONLY, 0)
			must(t, err)
			_, err = f.WriteString("y")
			must(t, errors.Join(err, f.Close(), os.Chtimes(file, before.ModTime(), before.ModTime())))
		},
	} {
		for stamped, later := range map[string]time.Duration{"read again": 0, "by its stamp": time.Hour} {
			t.Run(name+", "+stamped, func(t *testing.T) {
				dir := folder(t, map[string]string{manifest: `{"name": "demo"}`, "run.sh": long, "lib/a": "a", "lib/b": "b"})
				link(t, dir, "lib/a")
				b := kept(t, dir, later)
				if a := loaded(t, b); a.Err != nil || a.Name != "demo" {
					t.Fatalf("it is off as it was added: %v", a.Err)
				}
				change(t, dir)
				if a := loaded(t, b); !errors.Is(a.Err, plugin.ErrChanged) {
					t.Errorf("after a change: %v", a.Err)
				}
			})
		}
	}
}

func link(t *testing.T, dir, to string) {
	t.Helper()
	_ = os.Remove(filepath.Join(dir, "link"))
	must(t, os.Symlink(to, filepath.Join(dir, "link")))
}

func TestWhatChangesNothingLeavesItOn(t *testing.T) {
	dir := folder(t, map[string]string{manifest: `{"name": "demo"}`, ".git/HEAD": "x", "run.sh": "x"})
	for _, later := range []time.Duration{0, time.Hour} {
		b := kept(t, dir, later)
		writeEntry(t, filepath.Join(dir, ".git", "index"), later.String())
		must(t, os.Chtimes(filepath.Join(dir, "run.sh"), time.Now(), time.Now()))
		writeEntry(t, filepath.Join(dir, "scratch"), "")
		must(t, os.Remove(filepath.Join(dir, "scratch")))
		for range 2 {
			if a := loaded(t, b); a.Err != nil {
				t.Errorf("%v", a.Err)
			}
		}
	}
}

func TestOnlyItsOwnRepositoryIsNoPartOfAPlugin(t *testing.T) {
	for name, change := range map[string]func(dir string) error{
		"a repository further down": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "sub", ".git", "x.sh"), []byte("other"), 0o644)
		},
		"a link in its place": func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, ".git")), os.Symlink("sub", filepath.Join(dir, ".git")))
		},
		"a link into it": func(dir string) error { return os.Symlink("../.git/HEAD", filepath.Join(dir, "sub", "x")) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{manifest: `{"name": "demo"}`, ".git/HEAD": "x", "sub/.git/x.sh": "x"})
			b := kept(t, dir, 0)
			must(t, change(dir))
			if a := loaded(t, b); a.Err == nil {
				t.Error("it is still on")
			}
		})
	}
}

func TestAFolderThatCannotBePinnedIsNotAdded(t *testing.T) {
	b := plugin.Book{Dir: t.TempDir(), Now: time.Now}
	for name, tt := range map[string]struct {
		do   func(dir string) error
		want string
	}{
		"a link out":   {func(dir string) error { return os.Symlink("/etc/passwd", filepath.Join(dir, "x")) }, "x: the link leads out of its folder"},
		"a folder out": {func(dir string) error { return os.Symlink("../..", filepath.Join(dir, "x")) }, "x: the link leads out of its folder"},
		"a link into git": {func(dir string) error {
			return errors.Join(os.Mkdir(filepath.Join(dir, ".git"), 0o755), os.Symlink(".git", filepath.Join(dir, "x")))
		}, "x: a link into .git"},
		"a circle": {func(dir string) error { return os.Symlink("x", filepath.Join(dir, "x")) }, "x: the links form a loop"},
		"a pipe":   {func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "x"), 0o600) }, "x: not a regular file"},
		"a huge file": {func(dir string) error {
			f, err := os.Create(filepath.Join(dir, "x"))
			return errors.Join(err, f.Truncate(1<<40), f.Close())
		}, "larger than 256 MB"},
	} {
		t.Run(name, func(t *testing.T) {
			dir := folder(t, map[string]string{manifest: `{"name": "demo"}`})
			must(t, tt.do(dir))
			if _, _, err := b.Inspect(dir); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

func TestTheBook(t *testing.T) {
	dir := folder(t, map[string]string{manifest: `{"name": "Demo"}`})
	b := kept(t, dir, 0)
	p, held, err := b.Inspect(folder(t, map[string]string{manifest: `{"name": "demo"}`}))
	must(t, err)
	if err := b.Add(p, held, plugin.Origin{}); err == nil || !strings.Contains(err.Error(), "is already added, from "+dir) {
		t.Errorf("another of the same name: %v", err)
	}
	writeEntry(t, filepath.Join(b.Dir, "odd.json"), "{")
	writeEntry(t, filepath.Join(b.Dir, "..x.json"), "{}")
	all, err := b.Load()
	if err != nil || len(all) != 2 || all[0].Err != nil || all[1].Err == nil || all[1].Name != "odd" {
		t.Errorf("%v, %v", all, err)
	}
	must(t, os.RemoveAll(dir))
	if all, _ := b.Load(); all[0].Err == nil || !strings.Contains(all[0].Err.Error(), "no longer exists") {
		t.Errorf("without its folder: %v", all[0].Err)
	}
	must(t, b.Remove("Demo"))
	for _, name := range []string{"demo", "../plugins/odd", ""} {
		if err := b.Remove(name); err == nil {
			t.Errorf("%q was removed", name)
		}
	}
	if err := (plugin.Book{Now: time.Now}).Add(p, held, plugin.Origin{}); err == nil {
		t.Error("without a home it was remembered")
	}
	if all, err := (plugin.Book{}).Load(); len(all) != 0 || err != nil {
		t.Errorf("without a home: %v, %v", all, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(`{"name": "demo", "commands": ["./a"], "hooks": {}}`, `{"hooks": {"Stop": []}}`)
	f.Add(`{"name": "x", "commands": "../../../etc"}`, `[]`)
	f.Fuzz(func(t *testing.T, text, hooks string) {
		p, err := plugin.Read(folder(t, map[string]string{manifest: text, "hooks/hooks.json": hooks, "a/b.md": "x"}))
		for _, root := range p.Commands {
			if err != nil || !strings.HasPrefix(root.Path+"/", p.Dir+"/") {
				t.Errorf("%s is outside %s", root.Path, p.Dir)
			}
		}
	})
}
