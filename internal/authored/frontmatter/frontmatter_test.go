package frontmatter_test

import (
	"errors"
	"io/fs"
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
	"unicode/utf8"

	"coder/internal/authored/frontmatter"
)

func text(s string) frontmatter.Value { return frontmatter.Value{Text: s} }

func list(s ...string) frontmatter.Value { return frontmatter.Value{List: s} }

func TestParse(t *testing.T) {
	for name, tt := range map[string]struct {
		in       string
		fields   map[string]frontmatter.Value
		body     string
		problems int
	}{
		"no header":        {in: "# Title\n---\na: b\n---\n", body: "# Title\n---\na: b\n---\n"},
		"empty":            {},
		"empty header":     {in: "---\n---\nbody", body: "body"},
		"plain":            {in: "---\nname: a b\ndescription: Use it: when? \n---\nbody\n", fields: map[string]frontmatter.Value{"name": text("a b"), "description": text("Use it: when?")}, body: "body\n"},
		"windows, BOM":     {in: "\ufeff---\r\nname: x\r\n---\r\nbody\r\n", fields: map[string]frontmatter.Value{"name": text("x")}, body: "body\r\n"},
		"dots close":       {in: "---\na: b\n...\nbody", fields: map[string]frontmatter.Value{"a": text("b")}, body: "body"},
		"no body":          {in: "---\na: b\n---", fields: map[string]frontmatter.Value{"a": text("b")}},
		"a rule below":     {in: "---\na: b\n---\nx\n---\ny", fields: map[string]frontmatter.Value{"a": text("b")}, body: "x\n---\ny"},
		"quotes":           {in: "---\na: \"x: \\\"y\\\"\\n\\u4f60\\x41\"\nb: 'it''s'\n\"c d\": e\n---\n", fields: map[string]frontmatter.Value{"a": text("x: \"y\"\n你A"), "b": text("it's"), "c d": text("e")}},
		"open quotes":      {in: "---\na: \"x\nb: y\n---\n", fields: map[string]frontmatter.Value{"a": text("\"x"), "b": text("y")}, problems: 1},
		"quotes inside":    {in: "---\na: \"x\" and \"y\"\n---\n", fields: map[string]frontmatter.Value{"a": text(`"x" and "y"`)}, problems: 1},
		"comments":         {in: "---\n# all of it\na: b # why\nc: issue #5\nd: \"x # y\" # z\ne: # nothing\n---\n", fields: map[string]frontmatter.Value{"a": text("b"), "c": text("issue #5"), "d": text("x # y"), "e": text("")}},
		"literal":          {in: "---\na: |\n  one\n    two\n\n  three\n\nb: c\n---\n", fields: map[string]frontmatter.Value{"a": text("one\n  two\n\nthree"), "b": text("c")}},
		"folded":           {in: "---\na: >-\n  one\n  two\n\n  three\n---\n", fields: map[string]frontmatter.Value{"a": text("one two\nthree")}},
		"no block":         {in: "---\na: >x\nb: |5x\n---\n", fields: map[string]frontmatter.Value{"a": text(">x"), "b": text("|5x")}},
		"empty block":      {in: "---\na: |\nb: >\n---\n", fields: map[string]frontmatter.Value{"a": text(""), "b": text("")}},
		"continued":        {in: "---\na: one\n  two\n  three\nb: c\n---\n", fields: map[string]frontmatter.Value{"a": text("one two three"), "b": text("c")}},
		"begins below":     {in: "---\na:\n  one\n  two\n---\n", fields: map[string]frontmatter.Value{"a": text("one two")}},
		"list":             {in: "---\na:\n  - x\n  - \"y: z\" # w\n  - two\n    lines\nb:\n- c\n---\n", fields: map[string]frontmatter.Value{"a": list("x", "y: z", "two lines"), "b": list("c")}},
		"flow list":        {in: "---\na: [x, \"y, z\", bash(go test *), ]\nb: []\n---\n", fields: map[string]frontmatter.Value{"a": list("x", "y, z", "bash(go test *)"), "b": {List: []string{}}}},
		"map":              {in: "---\nmetadata:\n  author: me\n  version: \"1.0\"\n---\n", fields: map[string]frontmatter.Value{"metadata": {Map: map[string]string{"author": "me", "version": "1.0"}}}},
		"flow map":         {in: "---\nm: {a: b, c: 'd, e'}\n---\n", fields: map[string]frontmatter.Value{"m": {Map: map[string]string{"a": "b", "c": "d, e"}}}},
		"no name":          {in: "---\njust words\nhttp://x\na: b\n: c\n---\n", fields: map[string]frontmatter.Value{"a": text("b")}, problems: 3},
		"hardly a header":  {in: "---\na: b\n<x>\ny\nz\n<u>\nv\n---\n", fields: map[string]frontmatter.Value{"a": text("b")}, problems: 4},
		"twice":            {in: "---\na: b\na: c\n---\n", fields: map[string]frontmatter.Value{"a": text("b")}, problems: 1},
		"set in too early": {in: "---\n  a: b\nc: d\n---\n", fields: map[string]frontmatter.Value{"c": text("d")}, problems: 1},
	} {
		f, err := frontmatter.Parse(tt.in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(f.Fields) != len(tt.fields) || len(tt.fields) > 0 && !reflect.DeepEqual(f.Fields, tt.fields) {
			t.Errorf("%s: fields are %#v, want %#v", name, f.Fields, tt.fields)
		}
		if f.Body != tt.body || len(f.Problems) != tt.problems {
			t.Errorf("%s: body %q, problems %q; want %q and %d", name, f.Body, f.Problems, tt.body, tt.problems)
		}
	}
}

func TestUnclosedHeader(t *testing.T) {
	for _, in := range []string{"---", "---\n", "---\na: b\n", "---\na: b\nbody", "---\n" + strings.Repeat("a: b\n", 1<<16) + "---\n"} {
		if f, err := frontmatter.Parse(in); !errors.Is(err, frontmatter.ErrUnclosed) || f.Body != in {
			t.Errorf("%.20q: %v", in, err)
		}
	}
}

func TestProblemsNameTheLine(t *testing.T) {
	f, _ := frontmatter.Parse("---\na: b\n\nwrong\n---\n")
	if len(f.Problems) != 1 || !strings.HasPrefix(f.Problems[0], "line 4:") {
		t.Errorf("problems are %q", f.Problems)
	}
}

func TestWords(t *testing.T) {
	for want, v := range map[string]frontmatter.Value{
		"a|b": list("a", "b"), "read|bash(git add *, x)": text("read, bash(git add *, x)"), "": {}, "one": text("one"), "it's|b": text("it's, b"),
	} {
		if got := strings.Join(v.Items(), "|"); got != want {
			t.Errorf("%#v has the words %q, want %q", v, got, want)
		}
	}
}

func TestRead(t *testing.T) {
	files := fstest.MapFS{"a.md": {Data: []byte("hello")}, "d/b.md": {Data: []byte("x\xff")}}
	if s, cut, err := frontmatter.ReadFile(files, "a.md", 5); s != "hello" || cut || err != nil {
		t.Errorf("%q, %v, %v", s, cut, err)
	}
	if s, cut, err := frontmatter.ReadFile(files, "a.md", 4); s != "hell" || !cut || err != nil {
		t.Errorf("%q, %v, %v", s, cut, err)
	}
	if s, _, _ := frontmatter.ReadFile(files, "d/b.md", 9); !utf8.ValidString(s) {
		t.Errorf("%q", s)
	}
	if _, _, err := frontmatter.ReadFile(files, "d", 9); !errors.Is(err, frontmatter.ErrNotRegular) {
		t.Errorf("a folder was read: %v", err)
	}
	if _, _, err := frontmatter.ReadFile(files, "no", 9); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"---\na: b\n---\nbody", "---\na: [x, 'y', \"z\\\"\"]\n---", "---\na: |+2\n  x\n - y\n---\n", "---\na:\n - b\n  c\n---\n", "---\n\"a\\u00: b\n---\n",
		"---\na: {b: c, d}\n\te: f\n---\n", "\ufeff---\r\n---\r\n", "---\n'a': 'b''c'\n...\n", "---\na: \"\\\n---\n", "---\n- a\n---",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, err := frontmatter.Parse(in)
		if !strings.HasSuffix(in, got.Body) {
			t.Errorf("the body %q is not the end of %q", got.Body, in)
		}
		if err != nil {
			return
		}
		for key, v := range got.Fields {
			v.Items()
			if key == "" && !strings.Contains(in, `""`) && !strings.Contains(in, "''") {
				t.Errorf("a field without a name in %q", in)
			}
			if v.Text != "" && (v.List != nil || v.Map != nil) || v.List != nil && v.Map != nil {
				t.Errorf("%q is several things at once: %#v", key, v)
			}
		}
	})
}
