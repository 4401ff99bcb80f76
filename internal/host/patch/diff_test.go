package patch_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/host/patch"
)

// How edits among equal lines are told.
func TestDiffReadsWell(t *testing.T) {
	for _, tc := range []struct{ name, old, new, want string }{
		{"neighbours replaced", "x\nfoo\nfoo\ny\n", "x\nbar\nbar\ny\n", " x\n-foo\n-foo\n+bar\n+bar\n y\n"},
		{"one of two equal lines kept", "a\nb\nb\nc\n", "b\nb\na\nc\n", "-a\n b\n b\n+a\n c\n"},
		{"every other line", "foo\nx\nfoo\nx\n", "bar\nx\nbar\nx\n", "-foo\n+bar\n x\n-foo\n+bar\n x\n"},
		{"a function between two", "func a() {\n\tx\n}\n\nfunc c() {\n\tz\n}\n", "func a() {\n\tx\n}\n\nfunc b() {\n\ty\n}\n\nfunc c() {\n\tz\n}\n",
			" \tx\n }\n \n+func b() {\n+\ty\n+}\n+\n func c() {\n \tz\n }\n"},
		{"a function less", "func a() {\n}\n\nfunc b() {\n}\n\nfunc c() {\n}\n", "func a() {\n}\n\nfunc c() {\n}\n",
			" func a() {\n }\n \n-func b() {\n-}\n-\n func c() {\n }\n"},
		{"with its comment", "/*\n * A\n */\nfunc a\n", "/*\n * B\n */\nfunc b\n\n/*\n * A\n */\nfunc a\n",
			"+/*\n+ * B\n+ */\n+func b\n+\n /*\n  * A\n  */\n"},
		{"the last of many", "x\nx\nx\n", "x\nx\nx\nx\n", " x\n x\n x\n+x\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			text, _, _ := patch.Unified("f", []byte(tc.old), []byte(tc.new))
			_, body, _ := strings.Cut(text, "@@\n")
			if body != tc.want {
				t.Errorf("got\n%s\nwant\n%s", body, tc.want)
			}
		})
	}
}

// vocabulary is how many different lines a file is made of: few make many ways
// to match them.
func randomFile(r *rand.Rand, lines, vocabulary int) []string {
	list := make([]string, lines)
	for i := range list {
		list[i] = fmt.Sprintf("%s%d\n", strings.Repeat("\t", r.IntN(3)), r.IntN(vocabulary))
	}
	return list
}

// edited changes a file here and there: lines replaced, deleted, inserted,
// doubled, whole blocks moved, or one line replaced everywhere.
func edited(r *rand.Rand, lines []string, times int) []string {
	lines = append([]string{}, lines...)
	for range times {
		if len(lines) == 0 {
			return []string{"new\n"}
		}
		at := r.IntN(len(lines))
		n := min(1+r.IntN(5), len(lines)-at)
		block := append([]string{}, lines[at:at+n]...)
		switch r.IntN(6) {
		case 0:
			lines[at] = fmt.Sprintf("changed %d\n", r.IntN(5))
		case 1:
			lines = append(lines[:at], lines[at+n:]...)
		case 2:
			lines = append(lines[:at:at], append([]string{fmt.Sprintf("inserted %d\n", r.IntN(3))}, lines[at:]...)...)
		case 3:
			lines = append(lines[:at:at], append(block, lines[at:]...)...)
		case 4:
			rest := append(lines[:at:at], lines[at+n:]...)
			to := r.IntN(len(rest) + 1)
			lines = append(rest[:to:to], append(block, rest[to:]...)...)
		case 5:
			for i, l := range lines {
				if l == block[0] {
					lines[i] = "everywhere\n"
				}
			}
		}
	}
	return lines
}

// gitChanges is how many lines git adds and deletes at the least.
func gitChanges(t *testing.T, git, dir, old, new string) int {
	t.Helper()
	for name, text := range map[string]string{"old": old, "new": new} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(git, "diff", "--no-index", "--minimal", "--numstat", "old", "new")
	cmd.Dir = dir
	out, _ := cmd.Output() // 1 if they differ
	var added, deleted int
	if _, err := fmt.Sscan(string(out), &added, &deleted); err != nil {
		t.Fatalf("git says %q: %v", out, err)
	}
	return added + deleted
}

func TestDiffIsAboutAsShortAsGits(t *testing.T) {
	git, err := exec.LookPath("git")
	if err != nil {
		t.Skip("git is not installed")
	}
	dir := t.TempDir()
	for i := range 80 {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		lines := []int{5, 40, 300, 3000}[i%4]
		old := randomFile(r, lines, []int{2, 10, lines, 100 * lines}[i/4%4])
		new := edited(r, old, 1+r.IntN(1+lines/10))
		before, after := strings.Join(old, ""), strings.Join(new, "")
		if before == after {
			continue
		}
		text, added, deleted := patch.Unified("f", []byte(before), []byte(after))
		if got, err := apply(text, files{"f": before}); err != nil || got["f"] != after {
			t.Fatalf("file %d: the diff does not make the new file of the old: %v", i, err)
		}
		want := gitChanges(t, git, dir, before, after)
		if ours := added + deleted; ours > want+want/5 {
			t.Errorf("file %d of %d lines: %d lines changed, git has %d", i, lines, ours, want)
		}
	}
}

func TestReplacingEverywhereChangesOnlyThoseLines(t *testing.T) {
	old := strings.Repeat("keep\nfoo\nfoo\n}\n\n", 400)
	new := strings.ReplaceAll(old, "foo", "bar")
	if _, added, deleted := patch.Unified("f", []byte(old), []byte(new)); added != 800 || deleted != 800 {
		t.Errorf("+%d -%d", added, deleted)
	}
}

// Files that have little in common, or nothing but what they have in plenty,
// must not take forever.
func BenchmarkUnifiedHard(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	for name, files := range map[string][2][]string{
		"two letters": {randomFile(r, 300_000, 2), randomFile(r, 300_000, 2)},
		"few words":   {randomFile(r, 100_000, 100), randomFile(r, 100_000, 100)},
		"many words":  {randomFile(r, 100_000, 50_000), randomFile(r, 100_000, 50_000)},
	} {
		old, new := []byte(strings.Join(files[0], "")), []byte(strings.Join(files[1], ""))
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				patch.Unified("f", old, new)
			}
		})
	}
}
