package notes

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"coder/internal/authored/frontmatter"
)

func TestList(t *testing.T) {
	project := fstest.MapFS{
		"tabs.md": {Data: []byte("# Use tabs\n\nin every file\n")}, "empty.md": {}, "other.txt": {Data: []byte("x")}, "sub/a.md": {Data: []byte("x")},
		"long.md": {Data: []byte(strings.Repeat("é", MaxEntryBytes))},
	}
	own := fstest.MapFS{"tabs.md": {Data: []byte("mine")}, "boss.md": {Data: []byte("Ada is the boss")}}
	list, bad := List(frontmatter.Root{Path: "p", Files: project}, frontmatter.Root{Path: "o", Files: own})
	var got []string
	for _, e := range list {
		got = append(got, fmt.Sprint(e.Name, " ", e.Path, " ", e.FromUser))
	}
	if s := strings.Join(got, ", "); s != "boss o/boss.md true, long p/long.md false, tabs p/tabs.md false" {
		t.Error(s)
	}
	if len(bad) != 1 || bad[0].Path != "p/long.md" {
		t.Error(bad)
	}
	index := FormatIndex(list)
	if !strings.Contains(index, "- boss: Ada is the boss\n") || !strings.Contains(index, "- tabs: Use tabs […]\n") {
		t.Error(index)
	}
	if list, _ := List(frontmatter.Root{}, frontmatter.Root{}); len(list) != 0 {
		t.Error(list)
	}
}

func TestTheIndexIsBounded(t *testing.T) {
	var many []Entry
	for i := range 100 {
		many = append(many, Entry{Name: fmt.Sprint("e", i), Text: strings.Repeat("x", 500)})
	}
	if index := FormatIndex(many); len(index) > maxIndexBytes+40 || !strings.Contains(index, " more\n") {
		t.Errorf("%d bytes", len(index))
	}
}

func TestNames(t *testing.T) {
	taken := func(names ...string) func(string) bool {
		return func(n string) bool { return strings.Contains(" "+strings.Join(names, " ")+" ", " "+n+" ") }
	}
	for text, want := range map[string]string{
		"Use tabs, not spaces!": "use-tabs-not-spaces", "缩进用制表符": "缩进用制表符", "!!!": "note", "../../etc/passwd": "etc-passwd",
		strings.Repeat("a", 99): strings.Repeat("a", maxNameLen),
	} {
		if got := NewName(text, taken()); got != want || !IsValidName(got) {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := NewName("Use tabs", taken("use-tabs", "use-tabs-2")); got != "use-tabs-3" {
		t.Error(got)
	}
	for _, name := range []string{"", ".hidden", "a/b", "a b", ".."} {
		if IsValidName(name) {
			t.Errorf("%q is taken for a name", name)
		}
	}
}
