package mention

import (
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"

	"coder/internal/host/workspace"
)

func TestFind(t *testing.T) {
	tests := []struct{ text, want string }{
		{"look at @a.txt", "@a.txt"},
		{"@a.txt", "@a.txt"},
		{"see @src/main.go:12 and @b.go:3-9.", "@src/main.go:12 @b.go:3-9"},
		{"(@a.txt), [@b.txt]; \"@c.txt\"!", "@a.txt @b.txt @c.txt"},
		{"is it @a.txt? or @b.txt: yes", "@a.txt @b.txt"},
		{"the folder @src/ and @src/.", "@src/"},
		{`@"a b.txt" and @"c d.txt":4-5.`, `@"a b.txt" @"c d.txt":4-5`},
		{"@a.txt twice @a.txt but @a.txt:2", "@a.txt @a.txt:2"},
		{"mail me@example.org or john.@x.org", ""},
		{"git@github.com:org/repo and node_modules/@types/node", ""},
		{"icon @img/icon@2x.png", "@img/icon@2x.png"},
		{"code `@a.txt` and ``@b.txt ` `` but @c.txt", "@c.txt"},
		{"an open ` then @c.txt", "@c.txt"},
		{"```go\n@a.txt\n```\n@b.txt", "@b.txt"},
		{"~~~~\n@a.txt\n~~~\n@c.txt\n~~~~\n@b.txt", "@b.txt"},
		{`\@a.txt and @@ -1,3 +1,4 @@`, ""},
		{"看@a.txt，再看@b.txt。", "@a.txt @b.txt"},
		{"@ alone, @. and @.. and @... and @-", "@. @.."},
		{"@../up.txt @./here.txt @/etc/passwd @~/x", "@../up.txt @./here.txt @/etc/passwd @~/x"},
		{"@a.txt:0 @b.txt:9-3 @c.txt:x @d.txt:1-", "@a.txt:0 @b.txt:9-3 @c.txt:x @d.txt:1-"},
		{"@a.txt:99999999999999", "@a.txt:99999999999999"},
		{`an open quote @"a b.txt`, ""},
	}
	for _, tt := range tests {
		var got []string
		for _, r := range Find(tt.text) {
			got = append(got, r.String())
		}
		if s := strings.Join(got, " "); s != tt.want {
			t.Errorf("%q: found %q, want %q", tt.text, s, tt.want)
		}
	}
}

func TestLinesAreTakenOffTheName(t *testing.T) {
	tests := []struct {
		in   string
		want Ref
	}{
		{"a.go:12", Ref{Path: "a.go", FirstLine: 12, LastLine: 12}},
		{"a.go:12-20", Ref{Path: "a.go", FirstLine: 12, LastLine: 20}},
		{"a.go:20-12", Ref{Path: "a.go:20-12"}},
		{"a.go:+1", Ref{Path: "a.go:+1"}},
		{":12", Ref{Path: ":12"}},
		{"a:b:3", Ref{Path: "a:b", FirstLine: 3, LastLine: 3}},
	}
	for _, tt := range tests {
		if got := Parse(tt.in); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.in, got, tt.want)
		}
	}
}

// What would take hours if every sign were looked at from there to the end.
func TestLongMessagesAreReadOnce(t *testing.T) {
	const size = 1 << 20
	for _, unit := range []string{"*@", "@", "`", "` `` ``` ```` ", `@"`, "@a", "@:", "@alice ", "~~~\n"} {
		Find(strings.Repeat(unit, size/len(unit)))
	}
	var spans strings.Builder
	for n := 1; spans.Len() < size; n++ {
		spans.WriteString(strings.Repeat("`", n) + " @x ")
	}
	Find(spans.String())
}

func TestUnfinished(t *testing.T) {
	for _, tt := range []struct {
		text  string
		start int
		path  string
	}{
		{"@", 0, ""}, {"see @ma", 4, "ma"}, {"one\n@a/b", 4, "a/b"}, {"看@说", 3, "说"}, {"(@x", 1, "x"}, {`@"my fi`, 0, "my fi"}, {"@a @b", 3, "b"},
		{"@server:docs/one", 0, "server:docs/one"}, {"@a.go:1", 0, "a.go:1"},
		{"", -1, ""}, {"me@example", -1, ""}, {"@a ", -1, ""}, {"@a\n", -1, ""}, {`@"a" b`, -1, ""}, {"@a,", -1, ""}, {"git@{u", -1, ""}, {"a@b@c", -1, ""},
	} {
		start, path, ok := FindUnfinished(tt.text)
		if ok != (tt.start >= 0) || ok && (start != tt.start || path != tt.path) {
			t.Errorf("%q: %d %q %v", tt.text, start, path, ok)
		}
	}
}

func TestPlain(t *testing.T) {
	for path, want := range map[string]bool{
		"a.txt": true, "src/a-b_c.go": true, "说明.txt": true, "icon@2x.png": true,
		"a b.txt": false, `it's/a "q".txt`: false, "a,b": false, "a.txt.": false, "a:3": false, "(x)": false,
	} {
		if IsPlain(path) != want {
			t.Errorf("%q: %v", path, !want)
		}
		ref := Ref{Path: path, Quoted: !want}
		if found := Find("see " + ref.String() + " now"); len(found) != 1 || found[0].Path != path {
			t.Errorf("%s is found as %v", ref, found)
		}
	}
}

func TestResolveKeepsToTheWorkspaceAndSaysWhatItCannotFind(t *testing.T) {
	top := t.TempDir()
	root := filepath.Join(top, "w")
	for _, f := range []string{"w/a.txt", "w/sub/b.txt", "w/odd:3", "w/Makefile", "w/说明.txt", "out.txt"} {
		path := filepath.Join(top, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("../out.txt", filepath.Join(root, "way.txt")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../out.txt", filepath.Join(root, "way")); err != nil {
		t.Fatal(err)
	}
	ws, err := workspace.Open(root)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	tests := []struct{ text, want string }{
		{"@sub/ @a.txt:3 @sub", "@sub/ dir, @a.txt:3, @sub dir"},
		{"@odd:3 @Makefile", "@odd:3, @Makefile"},
		{"看@a.txt里面 and @说明.txt", "@a.txt, @说明.txt"},
		{"@no.txt", "@no.txt: no such file in the workspace"},
		{"@alice, @Override", ""},
		{"@../out.txt @way.txt", "@../out.txt: not read: outside the workspace, @way.txt: not read: outside the workspace"},
		{"@way of old", "@way: not read: outside the workspace"},
		{"@" + root + "/a.txt", "@" + root + "/a.txt"},
	}
	for _, tt := range tests {
		targets, left := Resolve(ws, Find(tt.text))
		var got []string
		for _, x := range targets {
			s := x.Ref.String()
			if x.Dir {
				s += " dir"
			}
			if x.Note != "" {
				s += ": " + x.Note
			}
			got = append(got, s)
		}
		if s := strings.Join(got, ", "); s != tt.want || left != 0 {
			t.Errorf("%q: %q, %d left; want %q", tt.text, s, left, tt.want)
		}
	}
	var many []Ref
	for i := range MaxRefs + 5 {
		many = append(many, Ref{Path: fmt.Sprintf("f%d.txt", i)})
	}
	if targets, left := Resolve(ws, many); len(targets) != MaxRefs || left != 5 {
		t.Errorf("%d targets, %d left", len(targets), left)
	}
	people := make([]Ref, maxLookups+7)
	for i := range people {
		people[i].Path = fmt.Sprintf("person%d", i)
	}
	if targets, left := Resolve(ws, people); len(targets) != 0 || left != 7 {
		t.Errorf("of people: %d targets, %d left", len(targets), left)
	}
}

func TestWriteNumbersLinesAndIsBounded(t *testing.T) {
	read := func(path, result string) ReadTarget { return ReadTarget{Target{Ref: Parse(path)}, result} }
	got := Format([]ReadTarget{
		read("a.go:5-6", `{"ok":true,"content":"five\nsix\n","start_line":5,"has_more":true,"total_lines":9}`),
		read("b.go", `{"ok":true,"content":"one","start_line":1,"has_more":true,"total_lines":9,"note":"odd bytes"}`),
		read("empty", `{"ok":true,"content":"","start_line":1}`),
		read("c.go", `{"ok":false,"error":"it is on fire"}`),
		read("p.png", `{"ok":true,"media_type":"image/png","size":7}`),
		{Target{Ref: Ref{Path: "d"}, Dir: true}, `{"ok":true,"entries":["x","y/"],"truncated":true}`},
		{Target: Target{Ref: Ref{Path: "s"}, Note: "secret"}},
		read("broken", "{"),
	}, 3)
	_, got, _ = strings.Cut(got, "\n")
	const want = `<file name="a.go">
5	five
6	six
</file>
<file name="b.go">
1	one
(the file continues, it has 9 lines; use the read tool from line 2)
(odd bytes)
</file>
<file name="empty">
(empty)
</file>
<file name="c.go">not read: it is on fire</file>
<file name="p.png">a picture (image/png, 7 bytes), shown with this message</file>
<directory name="d">
x
y/
(and more; use the list tool)
</directory>
<file name="s">secret</file>
<file name="broken">not read: the result cannot be parsed</file>
3 more names were skipped.`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if Format(nil, 0) != "" {
		t.Error("no files give a text")
	}
	long := read("l", `{"ok":true,"start_line":1,"content":"`+strings.Repeat("x", MaxBytes/2)+`"}`)
	text := Format([]ReadTarget{long, long, long}, 0)
	if len(text) > MaxBytes+1000 || strings.Count(text, "too long together") != 2 {
		t.Errorf("%d bytes of text", len(text))
	}
}

func FuzzFind(f *testing.F) {
	for _, s := range []string{"@a.txt:1-2", `@"a b":3`, "```\n@x\n```", "`@a`", "me@x.org", "看@a.txt里，", "@@", `@"`, "@a:99999999999", "~~~\n@x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		refs := Find(text)
		if !reflect.DeepEqual(refs, Find(text)) {
			t.Error("two looks differ")
		}
		for _, r := range refs {
			if !strings.Contains(text, r.Path) || r.Path == "" || strings.ContainsRune(r.Path, '\n') {
				t.Errorf("%q: %q does not stand there", text, r.Path)
			}
			if r.FirstLine < 0 || r.LastLine < r.FirstLine || r.FirstLine == 0 && r.LastLine != 0 {
				t.Errorf("%q: lines %d-%d", text, r.FirstLine, r.LastLine)
			}
			if again := Find(r.String()); utf8.ValidString(r.Path) && !strings.ContainsRune(r.Path, '`') && (len(again) != 1 || again[0] != r) {
				t.Errorf("%q: %v came back as %v", text, r, again)
			}
		}
	})
}
