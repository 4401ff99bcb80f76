package files_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"coder/internal/core/display"
)

// sheet is a file of n lines with some of them changed.
func sheet(n int, end string, changed ...int) string {
	var b strings.Builder
	for i := 1; i <= n; i++ {
		mark := ""
		for _, c := range changed {
			if c == i {
				mark = " changed"
			}
		}
		fmt.Fprintf(&b, "line %d%s%s", i, mark, end)
	}
	return b.String()
}

func TestSomeHunksOfAChange(t *testing.T) {
	const moves = "diff --git a/m b/n\nrename from m\nrename to n\n"
	diff := func(name string, at ...int) string {
		text := "--- a/" + name + "\n+++ b/" + name + "\n"
		for _, n := range at {
			text += fmt.Sprintf("@@ -%d,1 +%d,1 @@\n-line %d\n+line %d changed\n", n, n, n, n)
		}
		return text
	}
	tests := []struct {
		name  string
		call  []any
		hunks int
		only  []int
		want  map[string]string // "" is no file
	}{
		{"write", []any{"write", "path", "f", "content", sheet(60, "\n", 5, 30, 55)}, 3, []int{1, 3}, map[string]string{"f": sheet(60, "\n", 5, 55)}},
		{"write keeps line ends", []any{"write", "path", "dos", "content", sheet(60, "\n", 5, 30)}, 2, []int{2}, map[string]string{"dos": sheet(60, "\r\n", 30)}},
		{"edit everywhere", []any{"edit", "path", "f", "old_string", "0\n", "new_string", "0 changed\n", "replace_all", true}, 6, []int{2, 4}, map[string]string{"f": sheet(60, "\n", 20, 40)}},
		{"patch of one file", []any{"patch", "patch", diff("f", 5, 30, 55)}, 3, []int{2}, map[string]string{"f": sheet(60, "\n", 30)}},
		{"patch of several files", []any{"patch", "patch", diff("f", 5, 30) + diff("dos", 5, 30) + "--- /dev/null\n+++ b/new\n@@ -0,0 +1,1 @@\n+x\n"}, 5, []int{2, 5},
			map[string]string{"f": sheet(60, "\n", 30), "dos": sheet(60, "\r\n"), "new": "x\n"}},
		{"a file is not made", []any{"patch", "patch", diff("f", 5) + "--- /dev/null\n+++ b/new\n@@ -0,0 +1,1 @@\n+x\n"}, 2, []int{1}, map[string]string{"f": sheet(60, "\n", 5), "new": ""}},
		{"a file is not moved", []any{"patch", "patch", moves + "diff --git a/f b/f\n" + diff("f", 5)}, 2, []int{2}, map[string]string{"m": "moved\n", "n": "", "f": sheet(60, "\n", 5)}},
		{"a file is moved only", []any{"patch", "patch", moves + "diff --git a/f b/f\n" + diff("f", 5)}, 2, []int{1}, map[string]string{"m": "", "n": "moved\n", "f": sheet(60, "\n")}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tools, dir := open(t)
			put(t, dir+"/f", sheet(60, "\n"))
			put(t, dir+"/dos", sheet(60, "\r\n"))
			put(t, dir+"/m", "moved\n")
			for _, f := range []string{"f", "dos", "m"} {
				must(t, tools, "read", "path", f)
			}
			name, args := tt.call[0].(string), tt.call[1:]
			c, err := prepare(t, tools, name, args...)
			if err != nil {
				t.Fatal(err)
			}
			shown := len(display.SplitHunks(c.Plan().Preview.(display.Diff).Unified))
			if c.Plan().Hunks != tt.hunks || shown != tt.hunks {
				t.Errorf("%d hunks can be chosen, %d are shown, want %d", c.Plan().Hunks, shown, tt.hunks)
			}
			for _, wrong := range [][]int{{}, {0}, {tt.hunks + 1}, {1, 1}} {
				if _, err := prepare(t, tools, name, append(args[:len(args):len(args)], "only_hunks", wrong)...); err == nil {
					t.Errorf("hunks %v are taken", wrong)
				}
			}
			o := must(t, tools, name, append(args[:len(args):len(args)], "only_hunks", tt.only)...)
			if !o.OK || o.Replacements != 0 {
				t.Errorf("result %+v", o)
			}
			for file, want := range tt.want {
				got, err := os.ReadFile(dir + "/" + file)
				if string(got) != want || (err == nil) != (want != "") {
					t.Errorf("%s is %q, want %q", file, got, want)
				}
			}
		})
	}
}

// What depends on other changes of the same patch is made with them or not at all.
func TestAPatchThatChangesAFileTwiceIsOneChange(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/a", "a\n")
	must(t, tools, "read", "path", "a")
	c, err := prepare(t, tools, "patch", "patch", "diff --git a/a b/b\nrename from a\nrename to b\ndiff --git a/a b/a\nnew file mode 100644\n--- /dev/null\n+++ b/a\n@@ -0,0 +1,1 @@\n+new\n")
	if err != nil {
		t.Fatal(err)
	}
	if c.Plan().Hunks != 0 {
		t.Errorf("%d hunks can be chosen", c.Plan().Hunks)
	}
}
