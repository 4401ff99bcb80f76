package files_test

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"coder/internal/core/display"
	"coder/internal/host/workspace"
	"coder/internal/tool"
	"coder/internal/tool/files"
	"coder/testkit/tooltest"
)

// open makes a workspace and its tools.
func open(t testing.TB) (tools tool.Set, dir string) {
	t.Helper()
	return openWith(t, files.Options{})
}

func openWith(t testing.TB, o files.Options) (tools tool.Set, dir string) {
	t.Helper()
	dir = t.TempDir()
	ws, err := workspace.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ws.Close() })
	tools, err = tool.NewSet(files.All(ws, o)...)
	if err != nil {
		t.Fatal(err)
	}
	return tools, dir
}

func put(t testing.TB, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// args makes JSON of pairs of names and values.
func args(pairs ...any) json.RawMessage {
	m := make(map[string]any)
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i].(string)] = pairs[i+1]
	}
	b, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return b
}

func prepare(t testing.TB, tools tool.Set, name string, pairs ...any) (tool.Call, error) {
	t.Helper()
	tl, ok := tools.Lookup(name)
	if !ok {
		t.Fatalf("no tool %q", name)
	}
	return tl.Prepare(t.Context(), args(pairs...))
}

// newContent is any tool's result as the model reads it.
type newContent struct {
	OK                         bool
	Path, Content, Note        string
	Start                      int  `json:"start_line"`
	End                        int  `json:"end_line"`
	More                       bool `json:"has_more"`
	Total                      int  `json:"total_lines"`
	Operation, Diff            string
	Size, Additions, Deletions int
	Replacements               int
	DiffTruncated              bool `json:"diff_truncated"`
	Entries, Unreadable        []string
	Truncated, Applied         bool
	MediaType                  string `json:"media_type"`
	Files                      []struct{ Path, From, Operation, Note string }
}

func call(t testing.TB, tools tool.Set, name string, pairs ...any) (o newContent, err error) {
	t.Helper()
	c, err := prepare(t, tools, name, pairs...)
	if err != nil {
		return o, err
	}
	r, err := c.Run(t.Context(), io.Discard)
	if err != nil {
		return o, err
	}
	b, err := json.Marshal(r.Value)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(string(b), `{"ok":true,"path":`) && !strings.HasPrefix(string(b), `{"ok":true,"applied":`) {
		t.Errorf("result is %.100s", b)
	}
	if err := json.Unmarshal(b, &o); err != nil {
		t.Fatal(err)
	}
	return o, nil
}

// must is call for what has to work.
func must(t testing.TB, tools tool.Set, name string, pairs ...any) newContent {
	t.Helper()
	o, err := call(t, tools, name, pairs...)
	if err != nil {
		t.Fatalf("%s %v: %v", name, pairs, err)
	}
	return o
}

// refused sees that a call fails with an error that says all of words.
func refused(t testing.TB, tools tool.Set, name string, pairs []any, words ...string) {
	t.Helper()
	o, err := call(t, tools, name, pairs...)
	if err == nil {
		t.Errorf("%s %.80v = %+v, want an error", name, pairs, o)
		return
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%s %.80v: error %q does not say %q", name, pairs, err, w)
		}
	}
}

func TestContract(t *testing.T) {
	fixture := func(name string, good, bad []string) func(*testing.T) tooltest.Fixture {
		return func(t *testing.T) tooltest.Fixture {
			tools, dir := open(t)
			put(t, dir+"/a.txt", "one\ntwo\nthree\n")
			put(t, dir+"/d/b.txt", "b\n")
			put(t, dir+"/bin", "a\x00b")
			tl, _ := tools.Lookup(name)
			return tooltest.Fixture{Tool: tl, Dir: dir, Good: good, Bad: bad}
		}
	}
	for name, f := range map[string]func(*testing.T) tooltest.Fixture{
		"read": fixture("read",
			[]string{`{"path":"a.txt"}`, `{"filePath":"a.txt","offset":"-1","limit":1}`},
			[]string{`{"path":""}`, `{"path":"../x"}`, `{"path":"a.txt","limit":-1}`, `{"path":"/etc/passwd"}`}),
		"list": fixture("list",
			[]string{`{}`, ``, `{"path":"d","depth":3}`},
			[]string{`{"path":".."}`, `{"depth":-1}`}),
		"write": fixture("write",
			[]string{`{"path":"new/x","content":"x\n"}`, `{"path":"a.txt","content":"one\n"}`},
			[]string{`{"path":"..","content":""}`, `{"path":"bin","content":""}`, `{"path":"d","content":""}`, `{"path":"x","content":"\u0000"}`}),
		"edit": fixture("edit",
			[]string{`{"path":"a.txt","oldText":"two","newStr":"2"}`, `{"path":"d/b.txt","old_string":"b","new_string":""}`},
			[]string{`{"path":"a.txt","old_string":"none","new_string":""}`, `{"path":"no","old_string":"a","new_string":"b"}`, `{"path":"a.txt","old_string":"","new_string":"b"}`}),
		"patch": fixture("patch",
			[]string{`{"patch":"--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n"}`, `{"diff":"*** Begin Patch\n*** Add File: n/x\n+x\n*** Delete File: d/b.txt\n*** End Patch"}`, `{"patch":"--- a/a.txt\n+++ b/a.txt\n@@ -3 +3 @@\n-three\n+3\n","dry_run":true}`},
			[]string{`{"patch":""}`, `{"patch":"x"}`, `{"patch":"--- a/no\n+++ b/no\n@@ -1 +1 @@\n-a\n+b\n"}`, `{"patch":"--- a/../x\n+++ b/../x\n@@ -1 +1 @@\n-a\n+b\n"}`, `{"patch":"--- a/bin\n+++ b/bin\n@@ -1 +1 @@\n-a\n+b\n"}`}),
	} {
		t.Run(name, func(t *testing.T) { tooltest.TestTool(t, f) })
	}
}

func TestNamesInOtherDialects(t *testing.T) {
	tools, _ := open(t)
	for _, name := range []string{"Read", "readFile", "view", "LS", "listFiles", "Write", "create_file", "Edit", "editFile", "str_replace", "apply_patch"} {
		if _, ok := tools.Lookup(name); !ok {
			t.Errorf("%s is not known", name)
		}
	}
	want := map[string]string{"": "read list write edit patch notebook_edit", tool.Sema: "Read LS Write Edit patch NotebookEdit", tool.CoAuthor: "readFile listFiles writeFile editFile patch notebook_edit"}
	for dialect, names := range want {
		var got []string
		for s := range tools.InDialect(dialect).Specs() {
			got = append(got, s.Name)
		}
		if strings.Join(got, " ") != names {
			t.Errorf("in %q the tools are %q", dialect, got)
		}
	}
}

func TestOutsideIsRefusedByEveryTool(t *testing.T) {
	tools, dir := open(t)
	out := t.TempDir()
	put(t, out+"/f", "secret")
	if err := os.Symlink(out, dir+"/link"); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{"../x", "/etc/passwd", out + "/f", "link/f", "link/a/b/c", "link"} {
		refused(t, tools, "read", []any{"path", path}, "outside workspace")
		refused(t, tools, "list", []any{"path", path}, "outside workspace")
		refused(t, tools, "write", []any{"path", path, "content", "x"}, "outside workspace")
		refused(t, tools, "edit", []any{"path", path, "old_string", "secret", "new_string", "x"}, "outside workspace")
		refused(t, tools, "patch", []any{"patch", "*** Begin Patch\n*** Update File: " + path + "\n-secret\n+x\n*** End Patch"}, "outside workspace")
		refused(t, tools, "patch", []any{"patch", "*** Begin Patch\n*** Add File: " + path + "\n+x\n*** End Patch"}, "outside workspace")
	}
	if get(t, out+"/f") != "secret" {
		t.Error("a file outside was changed")
	}
}

func TestEffectsNameTheRealFile(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/.git/config", "a\n")
	if err := os.Symlink(".git", dir+"/innocent"); err != nil {
		t.Fatal(err)
	}
	for name, more := range map[string][]any{
		"read":  nil,
		"write": {"content", "x"},
		"edit":  {"old_string", "a", "new_string", "b"},
	} {
		c, err := prepare(t, tools, name, append([]any{"path", dir + "/innocent/config"}, more...)...)
		if err != nil {
			t.Fatal(err)
		}
		if p := c.Plan(); p.Effects[0].Target != ".git/config" || p.Title != "innocent/config" {
			t.Errorf("%s: title %q, effects %v", name, p.Title, p.Effects)
		}
	}
}

func TestSpecialFilesAreRefused(t *testing.T) {
	tools, dir := open(t)
	if err := syscall.Mkfifo(dir+"/p", 0o666); err != nil {
		t.Fatal(err)
	}
	refused(t, tools, "read", []any{"path", "p"}, "named pipe")
	refused(t, tools, "edit", []any{"path", "p", "old_string", "a", "new_string", "b"}, "named pipe")
	refused(t, tools, "write", []any{"path", "p", "content", "b"}, "named pipe")
	refused(t, tools, "read", []any{"path", "."}, "directory")
	refused(t, tools, "list", []any{"path", "p"}, "not a directory")
}

func TestWrite(t *testing.T) {
	for _, tc := range []struct {
		name, old, content, want string // old "-" is no file
		op                       string
	}{
		{"new", "-", "a\nb\n", "a\nb\n", "created"},
		{"new and empty", "-", "", "", "created"},
		{"update", "a\n", "b\n", "b\n", "updated"},
		{"same", "a\n", "a\n", "a\n", "unchanged"},
		{"to nothing", "a\n", "", "", "updated"},
		{"byte order mark is kept", "\ufeffa\n", "b\n", "\ufeffb\n", "updated"},
		{"windows line ends are kept", "a\r\nb\r\n", "a\nc\n", "a\r\nc\r\n", "updated"},
		{"mixed line ends are not", "a\r\nb\n", "a\nb\n", "a\nb\n", "updated"},
		{"same but for what reading hides", "\ufeffa\r\nb\r\n", "a\nb\n", "\ufeffa\r\nb\r\n", "unchanged"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tools, dir := open(t)
			if tc.old != "-" {
				put(t, dir+"/d/f", tc.old)
			}
			o := must(t, tools, "write", "path", "d/f", "content", tc.content)
			if got := get(t, dir+"/d/f"); got != tc.want || o.Operation != tc.op || o.Size != len(tc.want) {
				t.Errorf("file %q, result %+v", got, o)
			}
			if (o.Diff == "") != (o.Operation == "unchanged") || strings.Contains(o.Diff, "@@") != (o.Additions+o.Deletions > 0) {
				t.Errorf("diff %q with +%d -%d", o.Diff, o.Additions, o.Deletions)
			}
		})
	}
}

func TestUnchangedFileIsNotTouched(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/f", "a\n")
	before, _ := os.Stat(dir + "/f")
	must(t, tools, "write", "path", "f", "content", "a\n")
	if after, _ := os.Stat(dir + "/f"); !os.SameFile(before, after) || after.ModTime() != before.ModTime() {
		t.Error("the file was written although nothing changed")
	}
}

func TestDiffIsBounded(t *testing.T) {
	tools, _ := open(t)
	o := must(t, tools, "write", "path", "f", "content", strings.Repeat("line\n", 1000))
	if n := strings.Count(o.Diff, "\n"); n != 80 || !o.DiffTruncated || o.Additions != 1000 {
		t.Errorf("%d lines of diff, truncated %v, %d additions", n, o.DiffTruncated, o.Additions)
	}
	o = must(t, tools, "write", "path", "g", "content", strings.Repeat("x", 100_000))
	if len(o.Diff) > 8000 || !o.DiffTruncated {
		t.Errorf("%d bytes of diff", len(o.Diff))
	}
	c, err := prepare(t, tools, "write", "path", "h", "content", strings.Repeat("line\n", 100_000))
	if err != nil {
		t.Fatal(err)
	}
	if d := c.Plan().Preview.(display.Diff); strings.Count(d.Unified, "\n+") != 100_000+1 || d.Added != 100_000 {
		t.Errorf("a person who must approve is not shown all: %d lines, +%d", strings.Count(d.Unified, "\n+"), d.Added)
	}
}

func TestOtherEncodingsAreNeverRewritten(t *testing.T) {
	tools, dir := open(t)
	latin1 := "caf\xe9 au lait\nname\n"
	sjis := "\x83\x5cname\n" // a character whose second byte is a backslash
	for name, text := range map[string]string{"latin1": latin1, "sjis": sjis, "utf16": "\xff\xfea\x00b\x00", "bin": "\x7fELF\x00\x01"} {
		put(t, dir+"/"+name, text)
		refused(t, tools, "write", []any{"path", name, "content", "x"})
		refused(t, tools, "edit", []any{"path", name, "old_string", "name", "new_string", "naïve"})
		if get(t, dir+"/"+name) != text {
			t.Errorf("%s was changed", name)
		}
	}
	must(t, tools, "edit", "path", "latin1", "old_string", "name", "new_string", "title")
	if got := get(t, dir+"/latin1"); got != "caf\xe9 au lait\ntitle\n" {
		t.Errorf("latin1 is now %q", got)
	}
	refused(t, tools, "edit", []any{"path", "sjis", "old_string", `\name`, "new_string", "x"}, "not UTF-8")
	refused(t, tools, "read", []any{"path", "bin"}, "binary")
	refused(t, tools, "read", []any{"path", "utf16"}, "UTF-16")
	refused(t, tools, "edit", []any{"path", "utf16", "old_string", "a", "new_string", "b"}, "UTF-16")
	refused(t, tools, "write", []any{"path", "utf16", "content", "b"}, "UTF-16")
	refused(t, tools, "patch", []any{"patch", "*** Begin Patch\n*** Update File: utf16\n-a\n+b\n*** End Patch"}, "UTF-16")
	if o := must(t, tools, "read", "path", "latin1"); o.Content != "caf\ufffd au lait\ntitle\n" || o.Note == "" {
		t.Errorf("read = %+v", o)
	}
}

func TestReadOnlyFileIsRefusedBeforeAnybodyIsAsked(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/f", "a\n")
	if err := os.Chmod(dir+"/f", 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := prepare(t, tools, "write", "path", "f", "content", "b"); !errors.Is(err, workspace.ErrReadOnly) {
		t.Errorf("write: %v", err)
	}
	if _, err := prepare(t, tools, "edit", "path", "f", "old_string", "a", "new_string", "b"); !errors.Is(err, workspace.ErrReadOnly) {
		t.Errorf("edit: %v", err)
	}
}

// What happens to a file between the plan and the run is never overwritten.
func TestChangedSincePlanned(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(t *testing.T, f string)
		say   string
	}{
		{"changed", func(t *testing.T, f string) { put(t, f, "a\nb\nmine\n") }, "changed on disk since the change was planned"},
		{"deleted", func(t *testing.T, f string) { os.Remove(f) }, "changed on disk"},
		{"now a directory", func(t *testing.T, f string) { os.Remove(f); os.Mkdir(f, 0o755) }, "directory"},
		{"now a link", func(t *testing.T, f string) { os.Rename(f, f+"2"); os.Symlink(filepath.Base(f)+"2", f) }, "changed on disk"},
		{"now a link outwards", func(t *testing.T, f string) { os.Remove(f); os.Symlink("/etc/passwd", f) }, "outside"},
	} {
		for _, use := range [][]any{{"write", "content", "new\n"}, {"edit", "old_string", "a", "new_string", "A"}} {
			t.Run(tc.name+" "+use[0].(string), func(t *testing.T) {
				tools, dir := open(t)
				f := dir + "/f"
				put(t, f, "a\nb\n")
				c, err := prepare(t, tools, use[0].(string), append([]any{"path", "f"}, use[1:]...)...)
				if err != nil {
					t.Fatal(err)
				}
				tc.spoil(t, f)
				before := snapshot(t, dir)
				if _, err := c.Run(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), tc.say) {
					t.Errorf("Run: %v, want it to say %q", err, tc.say)
				}
				if after := snapshot(t, dir); after != before {
					t.Errorf("the directory went from\n%s to\n%s", before, after)
				}
			})
		}
	}
}

func snapshot(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		b.WriteString(path + " " + d.Type().String() + "\n")
		if d.Type().IsRegular() {
			b.WriteString(get(t, path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestChangedSinceRead(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/f", "a\n")
	must(t, tools, "read", "path", "f")
	put(t, dir+"/f", "a\nsomebody else's\n")
	refused(t, tools, "edit", []any{"path", "f", "old_string", "a\n", "new_string", "b\n"}, "changed on disk", "re-read it", "+somebody else's")
	refused(t, tools, "write", []any{"path", "./f", "content", "b\n"}, "changed on disk", "re-read it")
	must(t, tools, "read", "path", "f")
	must(t, tools, "edit", "path", "f", "old_string", "a\n", "new_string", "b\n")
	if got := get(t, dir+"/f"); got != "b\nsomebody else's\n" {
		t.Errorf("file is %q", got)
	}
}

func TestGoneSinceRead(t *testing.T) {
	for _, tc := range []struct {
		name  string
		spoil func(f string) error
		say   string
	}{
		{"deleted", os.Remove, "does not exist"},
		{"now a directory", func(f string) error { return errors.Join(os.Remove(f), os.Mkdir(f, 0o755)) }, "directory"},
		{"now a pipe", func(f string) error { return errors.Join(os.Remove(f), syscall.Mkfifo(f, 0o644)) }, "named pipe"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tools, dir := open(t)
			put(t, dir+"/f", "a\n")
			must(t, tools, "read", "path", "f")
			if err := tc.spoil(dir + "/f"); err != nil {
				t.Fatal(err)
			}
			refused(t, tools, "edit", []any{"path", "f", "old_string", "a", "new_string", "b"}, tc.say)
			if tc.name != "deleted" {
				refused(t, tools, "write", []any{"path", "f", "content", "b"}, tc.say)
			}
		})
	}
}

func TestHugeFileIsNotChanged(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/f", "a\n")
	if err := os.Truncate(dir+"/f", 200<<20); err != nil {
		t.Fatal(err)
	}
	refused(t, tools, "edit", []any{"path", "f", "old_string", "a", "new_string", "b"}, "too large")
	refused(t, tools, "write", []any{"path", "f", "content", "b"}, "too large")
	refused(t, tools, "patch", []any{"patch", "*** Begin Patch\n*** Update File: f\n-a\n+b\n*** End Patch"}, "too large")
}

// TestLargeFileIsChangedInParts changes a few lines of a file that is too large to compare line by line.
func TestLargeFileIsChangedInParts(t *testing.T) {
	tools, dir := open(t)
	line := "INSERT INTO t VALUES ('something that fills a line');\n"
	lines := strings.Repeat(line, (12<<20)/len(line))
	put(t, dir+"/f", "first\n"+lines+"last\n")
	must(t, tools, "read", "path", "f")
	must(t, tools, "edit", "path", "f", "old_string", "first", "new_string", "1st")
	must(t, tools, "edit", "path", "f", "old_string", "last", "new_string", "end")
	refused(t, tools, "edit", []any{"path", "f", "old_string", "INSERT", "new_string", "REPLACE", "replace_all", true}, "the changed lines of f span")
	refused(t, tools, "edit", []any{"path", "f", "old_string", "nowhere", "new_string", "b"}, "is not in the file")
	refused(t, tools, "write", []any{"path", "f", "content", "b"}, "the changed lines of f span")
	refused(t, tools, "patch", []any{"patch", "*** Begin Patch\n*** Update File: f\n-1st\n+b\n*** End Patch"}, "too large")
	if got, err := os.ReadFile(dir + "/f"); err != nil || string(got) != "1st\n"+lines+"end\n" {
		t.Errorf("the file has %d bytes, %v", len(got), err)
	}
}

func TestOneEditAfterAnother(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/f", "a\nb\n")
	must(t, tools, "read", "path", "f")
	must(t, tools, "edit", "path", "f", "old_string", "a", "new_string", "A")
	must(t, tools, "edit", "path", "f", "old_string", "b", "new_string", "B")
	must(t, tools, "write", "path", "f", "content", "C\n")
	must(t, tools, "edit", "path", "f", "old_string", "C", "new_string", "D")
	if got := get(t, dir+"/f"); got != "D\n" {
		t.Errorf("file is %q", got)
	}
}

func TestList(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/.gitignore", "*.o\nout/\n")
	put(t, dir+"/b.txt", "")
	put(t, dir+"/x.o", "")
	put(t, dir+"/a/c/d", "")
	put(t, dir+"/a/y.o", "")
	put(t, dir+"/out/z", "")
	put(t, dir+"/.git/HEAD", "")
	if err := os.Symlink("b.txt", dir+"/l"); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []any
		want string
	}{
		{nil, ".git/ .gitignore a/ b.txt l@ out/ x.o"},
		{[]any{"path", ".", "depth", 3}, ".git/ .gitignore a/ a/c/ a/c/d b.txt l@ out/ x.o"},
		{[]any{"path", "a"}, "c/ y.o"},
		{[]any{"path", "out", "depth", 9}, "z"},
	} {
		if o := must(t, tools, "list", tc.args...); strings.Join(o.Entries, " ") != tc.want || o.Truncated {
			t.Errorf("list %v = %q, truncated %v", tc.args, o.Entries, o.Truncated)
		}
	}
	for i := range 600 {
		put(t, filepath.Join(dir, "many", strings.Repeat("n", i/100+1)+string(rune('a'+i%26))+strings.Repeat("m", i%100)), "")
	}
	if o := must(t, tools, "list", "path", "many"); len(o.Entries) != 500 || !o.Truncated {
		t.Errorf("%d entries, truncated %v", len(o.Entries), o.Truncated)
	}
	refused(t, tools, "list", []any{"path", "b.txt"}, "not a directory")
	refused(t, tools, "list", []any{"path", "none"}, "no such file")
}
