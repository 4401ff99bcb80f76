package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/build"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"coder/internal/host/codeindex"
	"coder/internal/host/program"
	"coder/internal/host/workspace"
	"coder/internal/record/undo"
	"coder/internal/tool"
	"coder/internal/tool/codesearch"
	"coder/internal/tool/files"
	"coder/internal/tool/git"
	"coder/internal/tool/search"
)

// How much the tools are measured with, and for how long.
const (
	treeFiles  = 5_000    // of the work tree
	treeFile   = 64 << 10 // bytes of a file of it
	manyFiles  = 100_000  // of the tree that is only listed
	toolRounds = 7
	toolBudget = 2 * time.Second // for one row, but each is run twice
)

// entrant is one way of doing what a row is about. If do is nil the program it
// needs is not installed.
type entrant struct {
	name string
	do   func() error
}

// row is several ways of doing one thing. The last is what the others are
// measured by, unless there is a limit to say instead.
type row struct {
	what  string
	limit string
	all   []entrant
}

// measure runs the entrants in turn, so that all see the same machine, and
// prints the least time of each.
func (r row) measure() error {
	least := make([]time.Duration, len(r.all))
	began := time.Now()
	for round := 0; round < toolRounds && (round < 2 || time.Since(began) < toolBudget); round++ {
		for i, e := range r.all {
			if e.do == nil {
				continue
			}
			start := time.Now()
			if err := e.do(); err != nil {
				return fmt.Errorf("%s, %s: %w", r.what, e.name, err)
			}
			if d := time.Since(start); round == 0 || d < least[i] {
				least[i] = d
			}
		}
	}
	r.print(least)
	return nil
}

func (r row) print(least []time.Duration) {
	var b strings.Builder
	fmt.Fprintf(&b, "%-30s", r.what)
	last := len(r.all) - 1
	for i, e := range r.all {
		switch {
		case e.do == nil:
			fmt.Fprintf(&b, "  %s is not installed", e.name)
		case i < last && r.all[last].do != nil && r.limit == "":
			fmt.Fprintf(&b, "  %s %.2f ms (%.2fx)", e.name, ms(least[i]), float64(least[i])/float64(least[last]))
		default:
			fmt.Fprintf(&b, "  %s %.2f ms", e.name, ms(least[i]))
		}
	}
	if r.limit != "" {
		b.WriteString("  (limit " + r.limit + ")")
	}
	fmt.Println(b.String())
}

// yard is where the tools are measured.
type yard struct {
	ctx     context.Context
	rg, git string // "" if not installed
	sources string // a large tree that is only read
	tree    string // a clean git work tree
	many    string // very many empty files
	data    string
	ends    []func() error
}

// tools compares the tools with the programs people use for the same.
func (b *runner) tools(int) (err error) {
	y, err := newYard(filepath.Join(b.dir, "yard"))
	if err != nil {
		return err
	}
	defer func() {
		for _, end := range y.ends {
			err = errors.Join(err, end())
		}
	}()
	for _, rows := range []func() ([]row, error){y.greps, y.globs, y.lookups, y.gits, y.files} {
		list, err := rows()
		if err != nil {
			return err
		}
		for _, r := range list {
			if err := r.measure(); err != nil {
				return err
			}
		}
	}
	return nil
}

func newYard(dir string) (*yard, error) {
	y := &yard{ctx: context.Background(), tree: dir + "/tree", many: dir + "/many", data: dir + "/data"}
	y.rg, y.git = installed("rg"), installed("git")
	if err := y.plant(); err != nil {
		return nil, fmt.Errorf("make a tree: %w", err)
	}
	y.sources = filepath.Join(build.Default.GOROOT, "src")
	if _, err := os.Stat(y.sources); err != nil {
		y.sources = y.tree
	}
	return y, y.scatter()
}

// installed is where a program is, "" if it is not there.
func installed(name string) string {
	at, err := program.LookPath(name)
	if err != nil {
		return ""
	}
	return at
}

// plant makes the work tree, of Go's own sources where they are.
func (y *yard) plant() error {
	n := 0
	_ = filepath.WalkDir(filepath.Join(build.Default.GOROOT, "src"), func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || filepath.Ext(name) != ".go" || n == treeFiles {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil || len(data) > treeFile {
			return nil
		}
		n++
		return y.write(fmt.Sprintf("d%02d/e%d/%d_%s", n%50, n%7, n, filepath.Base(name)), data)
	})
	for ; n < treeFiles; n++ {
		text := strings.Repeat(fmt.Sprintf("// f%d does something.\nfunc f%d() {}\n", n, n), 100)
		if err := y.write(fmt.Sprintf("d%02d/e%d/%d.go", n%50, n%7, n), []byte("package x\n"+text)); err != nil {
			return err
		}
	}
	lines := strings.Repeat("a line of some length, as lines of code have it\n", 10_000)
	large := strings.Repeat("a line of some length\n", 1<<20/22) + "the first text\n"
	err := errors.Join(y.write("lines.txt", []byte(lines)), y.write("large.txt", []byte(large)),
		y.write(".gitignore", []byte(".coder/\n*.tmp\n")))
	if y.git == "" || err != nil {
		return err
	}
	// Nothing tidies the repository up while others are measured in it.
	for _, args := range []string{"init -q", "config gc.auto 0", "config maintenance.auto false", "add -A",
		"-c user.name=b -c user.email=b@example.com commit -q -m all"} {
		err = errors.Join(err, y.run(y.git, y.tree, strings.Fields(args)...)())
	}
	return err
}

func (y *yard) write(name string, data []byte) error {
	name = filepath.Join(y.tree, name)
	return errors.Join(os.MkdirAll(filepath.Dir(name), 0o755), os.WriteFile(name, data, 0o644))
}

// scatter makes very many files.
func (y *yard) scatter() error {
	for i := range manyFiles {
		name := fmt.Sprintf("%s/d%d/e%d/f%d.go", y.many, i%10, i/10%100, i)
		if i < 1000 {
			if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
				return err
			}
		}
		f, err := os.Create(name)
		if err != nil {
			return err
		}
		f.Close()
	}
	return nil
}

// run is a command without output; an exit code of one is no error, for those
// that find nothing. It is nil if there is no such program.
func (y *yard) run(file, dir string, args ...string) func() error {
	if file == "" {
		return nil
	}
	return func() error {
		cmd := program.TrustedCommand(y.ctx, file, args...)
		cmd.Dir, cmd.Env, cmd.Stderr = dir, os.Environ(), os.Stderr
		_, err := cmd.Output()
		if failed := (*program.ExitError)(nil); errors.As(err, &failed) && failed.ExitCode() == 1 {
			return nil
		}
		return err
	}
}

func (y *yard) open(dir string) (*workspace.Workspace, error) {
	ws, err := workspace.Open(dir)
	if err == nil {
		y.ends = append(y.ends, ws.Close)
	}
	return ws, err
}

// call is a call of one of the tools, args being JSON.
func (y *yard) call(tools []tool.Tool, name, args string) func() error {
	return func() error {
		set, err := tool.NewSet(tools...)
		if err != nil {
			return err
		}
		t, _ := set.Lookup(name)
		c, err := t.Prepare(y.ctx, json.RawMessage(args))
		if err != nil {
			return err
		}
		_, err = c.Run(y.ctx, io.Discard)
		return err
	}
}

func (y *yard) greps() (rows []row, err error) {
	ws, err := y.open(y.sources)
	if err != nil {
		return nil, err
	}
	tools := search.All(ws, search.Options{})
	for _, g := range []struct{ what, pattern, flag string }{
		{"grep, a literal", "ErrUnexpectedEOF", "--case-sensitive"},
		{"grep, ignoring case", "errunexpectedeof", "--ignore-case"},
		{"grep, without a literal", "[qz]{7,}", "--case-sensitive"},
		{"grep, any characters", "q.*z.*q.*Z.*q", "--case-sensitive"},
	} {
		args := fmt.Sprintf(`{"pattern":%q,"ignore_case":%v,"max_matches":1000}`, g.pattern, g.flag == "--ignore-case")
		r := row{what: g.what, all: []entrant{
			{"grep", y.call(tools, "grep", args)},
			{"rg", y.run(y.rg, y.sources, "--no-config", "--hidden", "--line-number", "--no-heading", g.flag,
				"--regexp="+g.pattern, "./")},
		}}
		rows = append(rows, r)
	}
	return rows, nil
}

func (y *yard) globs() ([]row, error) {
	ws, err := y.open(y.tree)
	if err != nil {
		return nil, err
	}
	many, err := y.open(y.many)
	if err != nil {
		return nil, err
	}
	return []row{
		{what: "glob, 5,000 files", all: []entrant{
			{"glob", y.call(search.All(ws, search.Options{}), "glob", `{"pattern":"**/*_test.go"}`)},
			{"rg --files", y.run(y.rg, y.tree, "--no-config", "--files", "--hidden", "--glob=*_test.go")},
			{"git ls-files", y.run(y.git, y.tree, "ls-files", "-co", "--exclude-standard", "*_test.go")},
		}},
		{what: "glob, 100,000 files", all: []entrant{
			{"glob", y.call(search.All(many, search.Options{}), "glob", `{"pattern":"**/*7.go"}`)},
			{"rg --files", y.run(y.rg, y.many, "--no-config", "--files", "--hidden", "--glob=*7.go")},
		}},
	}, nil
}

// lookups measures the first answer, which builds the index, and those that follow.
func (y *yard) lookups() ([]row, error) {
	ws, err := y.open(y.tree)
	if err != nil {
		return nil, err
	}
	ask := func(x *codeindex.Index) func() error {
		return y.call([]tool.Tool{codesearch.SearchCode(ws, x, nil)}, "search_code",
			`{"query":"where do we parse the config"}`)
	}
	cold := func() error { return ask(codeindex.New(ws, codeindex.Options{}))() }
	warm := codeindex.New(ws, codeindex.Options{Now: time.Now, CheckEvery: time.Hour})
	looking := codeindex.New(ws, codeindex.Options{})
	for _, x := range []*codeindex.Index{warm, looking} {
		if err := ask(x)(); err != nil {
			return nil, err
		}
	}
	return []row{
		{what: "search_code, first answer", limit: "2 s", all: []entrant{{"cold", cold}}},
		{what: "search_code, then", limit: "50 ms", all: []entrant{{"warm", ask(warm)},
			{"looking for changes", ask(looking)}}},
	}, nil
}

func (y *yard) gits() ([]row, error) {
	ws, err := y.open(y.tree)
	if err != nil {
		return nil, err
	}
	door := program.NewOutside(os.Environ(), y.tree)
	status := y.call(git.All(git.Options{Workspace: ws, Launcher: door}), "git_status", `{}`)
	if y.git == "" {
		status = nil
	}
	keeper := undo.New(ws, undo.OpenStore(y.data, undo.StoreOptions{Now: time.Now}),
		undo.Options{Launcher: door, Now: time.Now})
	keep := func() error {
		_, err := keeper.SaveOriginals(y.ctx, []tool.Effect{{Kind: tool.Exec, Target: "make"}})
		return err
	}
	return []row{
		{what: "status of 5,000 files", all: []entrant{{"git_status", status},
			{"git status", y.run(y.git, y.tree, "status", "--porcelain")}}},
		{what: "snapshot before a command", all: []entrant{
			{"ours", keep}, {"git stash create", y.run(y.git, y.tree, "stash", "create")},
			{"git add -A -n", y.run(y.git, y.tree, "add", "-A", "-n")},
		}},
	}, nil
}

func (y *yard) files() ([]row, error) {
	ws, err := y.open(y.tree)
	if err != nil {
		return nil, err
	}
	tools := files.All(ws, files.Options{})
	if err := y.call(tools, "read", `{"path":"large.txt","offset":-10}`)(); err != nil {
		return nil, err
	}
	large, lines := filepath.Join(y.tree, "large.txt"), filepath.Join(y.tree, "lines.txt")
	turn := 0
	edit := func() error {
		from, to := "the first text", "a second text!"
		if turn++; turn%2 == 0 {
			from, to = to, from
		}
		return y.call(tools, "edit", fmt.Sprintf(`{"path":"large.txt","old_string":%q,"new_string":%q}`, from, to))()
	}
	return []row{
		{what: "read 10,000 lines", all: []entrant{
			{"read", y.call(tools, "read", `{"path":"lines.txt","limit":10000}`)},
			{"cat", y.run(installed("cat"), y.tree, lines)},
		}},
		{what: "edit 1 MB", all: []entrant{
			{"edit", edit},
			{"sed -i", y.run(installed("sed"), y.tree, "-i.tmp", "s/some length/some length/", large+"2")},
		}},
	}, os.WriteFile(large+"2", []byte(strings.Repeat("a line of some length\n", 1<<20/22)), 0o644)
}
