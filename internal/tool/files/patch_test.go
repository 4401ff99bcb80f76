package files_test

import (
	"io"
	"os"
	"strings"
	"testing"

	"coder/internal/core/display"
	"coder/internal/host/workspace"
	"coder/internal/tool"
	"coder/internal/tool/files"
)

const three = `*** Begin Patch
*** Update File: a
@@
-one
+1
*** Add File: new/dir/b
+b
*** Delete File: c
*** Update File: d
*** Move to: sub/e
@@
-four
+4
*** End Patch
`

func TestPatch(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/a", "one\r\ntwo\r\n")
	put(t, dir+"/c", "three\n")
	put(t, dir+"/d", "four\n")
	if err := os.Chmod(dir+"/d", 0o755); err != nil {
		t.Fatal(err)
	}
	before := snapshot(t, dir)
	o := must(t, tools, "patch", "patch", three, "dry_run", true)
	if o.Applied || len(o.Files) != 4 || snapshot(t, dir) != before {
		t.Errorf("dry run = %+v", o)
	}
	c, err := prepare(t, tools, "patch", "patch", three, "dry_run", true)
	if err != nil || !c.Plan().ReadOnly() {
		t.Errorf("a dry run plans %v, %v", c.Plan().Effects, err)
	}
	c, err = prepare(t, tools, "patch", "patch", three)
	if err != nil {
		t.Fatal(err)
	}
	var targets []string
	for _, e := range c.Plan().Effects {
		if e.Kind != tool.Write {
			t.Errorf("effect %v", e)
		}
		targets = append(targets, e.Target)
	}
	if got := strings.Join(targets, " "); got != "a new/dir/b c d sub/e" {
		t.Errorf("targets %q", got)
	}
	if d := c.Plan().Preview.(display.Diff); d.Added != 3 || d.Deleted != 3 || !strings.Contains(d.Unified, "rename to sub/e") || !strings.Contains(d.Unified, "+++ b/new/dir/b") {
		t.Errorf("preview = %+v", d)
	}
	o = must(t, tools, "patch", "patch", three)
	if !o.Applied || o.Additions != 3 || o.Deletions != 3 || o.Files[3].Operation != "moved" || o.Files[3].From != "d" || o.Files[0].Note == "" {
		t.Errorf("result = %+v", o)
	}
	if a, b, e := get(t, dir+"/a"), get(t, dir+"/new/dir/b"), get(t, dir+"/sub/e"); a != "1\r\ntwo\r\n" || b != "b\n" || e != "4\n" {
		t.Errorf("files are now %q, %q, %q", a, b, e)
	}
	if info, err := os.Stat(dir + "/sub/e"); err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("moved file: %v, %v", info, err)
	}
	for _, name := range []string{"c", "d"} {
		if _, err := os.Lstat(dir + "/" + name); !os.IsNotExist(err) {
			t.Errorf("%s is still there", name)
		}
	}
}

// Nothing is written if the last file does not fit.
func TestPatchIsAllOrNothing(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/a", "one\n")
	put(t, dir+"/c", "three\n")
	put(t, dir+"/d", "five\n")
	before := snapshot(t, dir)
	refused(t, tools, "patch", []any{"patch", three}, "d, hunk 1 of 1", "four")
	if after := snapshot(t, dir); after != before {
		t.Errorf("the directory went from\n%s to\n%s", before, after)
	}
}

func TestPatchRefuses(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/latin1", "caf\xe9\n")
	put(t, dir+"/ro", "a\n")
	put(t, dir+"/seen", "a\n")
	if err := os.Chmod(dir+"/ro", 0o444); err != nil {
		t.Fatal(err)
	}
	must(t, tools, "read", "path", "seen")
	put(t, dir+"/seen", "a\nmine\n")
	update := func(name string) []any {
		return []any{"patch", "*** Begin Patch\n*** Update File: " + name + "\n-a\n+b\n*** End Patch"}
	}
	refused(t, tools, "patch", update("latin1"), "not UTF-8")
	refused(t, tools, "patch", update("ro"), "read-only")
	refused(t, tools, "patch", update("seen"), "changed on disk", "+mine")
	refused(t, tools, "patch", []any{"patch", "*** Begin Patch\n*** Add File: x\n+a\x00\n*** End Patch"}, "NUL")
}

func TestPatchNotesOneFileByAnyName(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/d/f", "a\n")
	if err := os.Symlink("d", dir+"/link"); err != nil {
		t.Fatal(err)
	}
	must(t, tools, "patch", "patch", "*** Begin Patch\n*** Update File: link/f\n-a\n+b\n*** Update File: "+dir+"/d/f\n-b\n+c\n*** End Patch")
	if got := get(t, dir+"/d/f"); got != "c\n" {
		t.Errorf("file is %q", got)
	}
	must(t, tools, "edit", "path", "d/f", "old_string", "c", "new_string", "d") // known to the model
}

func TestPatchChangedSincePlanned(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/a", "one\n")
	put(t, dir+"/c", "three\n")
	put(t, dir+"/d", "four\n")
	c, err := prepare(t, tools, "patch", "patch", three)
	if err != nil {
		t.Fatal(err)
	}
	put(t, dir+"/sub/e", "mine\n")
	before := snapshot(t, dir)
	if _, err := c.Run(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "sub/e changed on disk") {
		t.Errorf("Run: %v", err)
	}
	if snapshot(t, dir) != before {
		t.Error("something was written")
	}
}

func TestToolsInAnAddedTree(t *testing.T) {
	main, more := t.TempDir(), t.TempDir()
	put(t, more+"/f", "a\n")
	put(t, more+"/g", "g\n")
	ws, err := workspace.Open(main, more)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	tools, err := tool.NewSet(files.All(ws, files.Options{})...)
	if err != nil {
		t.Fatal(err)
	}
	must(t, tools, "read", "path", more+"/f")
	must(t, tools, "edit", "path", more+"/f", "old_string", "a", "new_string", "b")
	must(t, tools, "write", "path", more+"/new/h", "content", "h\n")
	o := must(t, tools, "patch", "patch", "*** Begin Patch\n*** Update File: "+more+"/f\n*** Move to: "+more+"/f2\n-b\n+c\n*** Delete File: "+more+"/g\n*** End Patch")
	if get(t, more+"/f2") != "c\n" || get(t, more+"/new/h") != "h\n" || !o.Applied {
		t.Errorf("result = %+v", o)
	}
	if o := must(t, tools, "list", "path", more); strings.Join(o.Entries, " ") != "f2 new/" {
		t.Errorf("list = %q", o.Entries)
	}
}

// linksAndTargets makes a link of each kind, and what they point to.
func linksAndTargets(t *testing.T) (tools tool.Set, dir string) {
	t.Helper()
	tools, dir = open(t)
	put(t, dir+"/real/target", "one\ntwo\n")
	for name, to := range map[string]string{"link": "real/target", "folder": "real", "dangling": "nowhere", "out": "/etc/hostname", "real/inner": "target"} {
		if err := os.Symlink(to, dir+"/"+name); err != nil {
			t.Fatal(err)
		}
	}
	return tools, dir
}

func TestPatchDeletesALinkAndNotItsTarget(t *testing.T) {
	for name, text := range map[string]string{
		"envelope":          "*** Begin Patch\n*** Delete File: %\n*** End Patch",
		"diff of the text":  "--- a/%\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n",
		"diff as git's":     "diff --git a/% b/%\ndeleted file mode 120000\nindex 1..0\n--- a/%\n+++ /dev/null\n@@ -1 +0,0 @@\n-real/target\n\\ No newline at end of file\n",
		"whatever it holds": "--- a/%\n+++ /dev/null\n@@ -1 +0,0 @@\n-nothing like it\n",
	} {
		t.Run(name, func(t *testing.T) {
			tools, dir := linksAndTargets(t)
			for _, link := range []string{"link", "dangling", "out", "folder", "real/inner"} {
				o := must(t, tools, "patch", "patch", strings.ReplaceAll(text, "%", link))
				if _, err := os.Lstat(dir + "/" + link); !os.IsNotExist(err) {
					t.Errorf("%s is still there: %v", link, err)
				}
				if len(o.Files) != 1 || o.Files[0].Path != link || o.Files[0].Operation != "deleted" || !strings.Contains(o.Files[0].Note, "link") {
					t.Errorf("%s: %+v", link, o)
				}
			}
			if got := get(t, dir+"/real/target"); got != "one\ntwo\n" {
				t.Errorf("the target is %q", got)
			}
		})
	}
}

func TestPatchOfALink(t *testing.T) {
	tools, dir := linksAndTargets(t)
	must(t, tools, "patch", "patch", "*** Begin Patch\n*** Update File: link\n-one\n+1\n*** End Patch")
	must(t, tools, "edit", "path", "link", "old_string", "two", "new_string", "2")
	if to, err := os.Readlink(dir + "/link"); err != nil || to != "real/target" || get(t, dir+"/real/target") != "1\n2\n" {
		t.Errorf("edited through a link: it leads to %q, %v", to, err)
	}
	refused(t, tools, "patch", []any{"patch", "*** Begin Patch\n*** Update File: link\n*** Move to: other\n*** End Patch"}, "link is a link", "cannot move")
	refused(t, tools, "patch", []any{"patch", "*** Begin Patch\n*** Update File: out\n-x\n+y\n*** End Patch"}, "outside")
	// In one patch: the link goes, a file of that name comes, the target changes.
	must(t, tools, "patch", "patch", "*** Begin Patch\n*** Delete File: link\n*** Add File: link\n+mine\n*** Update File: real/target\n-1\n+one\n*** End Patch")
	if info, err := os.Lstat(dir + "/link"); err != nil || !info.Mode().IsRegular() || get(t, dir+"/link") != "mine\n" || get(t, dir+"/real/target") != "one\n2\n" {
		t.Errorf("link is %v, %v", info, err)
	}
	// Through a linked folder the file itself is deleted, there being no link of that name.
	must(t, tools, "patch", "patch", "*** Begin Patch\n*** Delete File: folder/target\n*** End Patch")
	if _, err := os.Lstat(dir + "/real/target"); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
}

func TestPatchOfALinkThatChangedSincePlanned(t *testing.T) {
	tools, dir := linksAndTargets(t)
	for _, meanwhile := range []func() error{
		func() error { return os.Symlink("real", dir+"/link") },
		func() error { return os.WriteFile(dir+"/link", []byte("real/target"), 0o644) },
	} {
		c, err := prepare(t, tools, "patch", "patch", "*** Begin Patch\n*** Delete File: link\n*** End Patch")
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(dir + "/link"); err != nil {
			t.Fatal(err)
		}
		if err := meanwhile(); err != nil {
			t.Fatal(err)
		}
		if _, err := c.Run(t.Context(), io.Discard); err == nil || !strings.Contains(err.Error(), "changed on disk") {
			t.Errorf("Run: %v", err)
		}
		os.Remove(dir + "/link")
		if err := os.Symlink("real/target", dir+"/link"); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPatchReplacesAFileByAnother(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/a", "one\n")
	must(t, tools, "patch", "patch", "*** Begin Patch\n*** Delete File: a\n*** Add File: a\n+another\n*** End Patch")
	if got := get(t, dir+"/a"); got != "another\n" {
		t.Errorf("a is %q", got)
	}
}

func TestPatchOfModes(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/f", "a\n")
	mode := func(name string, want os.FileMode) {
		t.Helper()
		if info, err := os.Stat(dir + "/" + name); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", name, info.Mode(), err)
		}
	}
	if err := os.Chmod(dir+"/f", 0o640); err != nil {
		t.Fatal(err)
	}
	o := must(t, tools, "patch", "patch", "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n")
	if mode("f", 0o750); !strings.Contains(o.Diff, "new mode 100755") || o.Files[0].Operation != "updated" || get(t, dir+"/f") != "a\n" {
		t.Errorf("%+v", o)
	}
	must(t, tools, "patch", "patch", "diff --git a/f b/f\nold mode 100755\nnew mode 100644\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n")
	if mode("f", 0o640); get(t, dir+"/f") != "b\n" {
		t.Errorf("f is %q", get(t, dir+"/f"))
	}
	must(t, tools, "patch", "patch", "diff --git a/g b/g\nnew file mode 100755\n--- /dev/null\n+++ b/g\n@@ -0,0 +1 @@\n+#!/bin/sh\n")
	if info, err := os.Stat(dir + "/g"); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("g: %v, %v", info.Mode(), err)
	}
	must(t, tools, "patch", "patch", "diff --git a/f b/h\nold mode 100644\nnew mode 100755\nrename from f\nrename to h\n")
	mode("h", 0o750)
}

// Whatever line ends a patch is written with, those of the file are kept.
func TestPatchKeepsTheLineEndsOfTheFile(t *testing.T) {
	for _, tc := range []struct{ name, file, patch, want string }{
		{"context to the byte, plain lines that come", "a\r\nb\r\nc\r\n", "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n a\r\n-b\r\n+B\n+new\n c\r\n", "a\r\nB\r\nnew\r\nc\r\n"},
		{"the reverse", "a\nb\nc\n", "--- a/f\n+++ b/f\n@@ -1,3 +1,4 @@\n a\n-b\n+B\r\n+new\r\n c\n", "a\nB\nnew\nc\n"},
		{"no context", "a\r\nb\r\n", "--- a/f\n+++ b/f\n@@ -1,0 +2 @@\n+new\n", "a\r\nnew\r\nb\r\n"},
		{"at the end", "a\r\nb\r\n", "*** Begin Patch\n*** Update File: f\n+new\n*** End Patch", "a\r\nb\r\nnew\r\n"},
		{"search and replace", "a\r\nb\r\n", "f\n<<<<<<< SEARCH\na\nb\n=======\n1\n2\n3\n>>>>>>> REPLACE", "1\r\n2\r\n3\r\n"},
		{"a conversion", "a\r\nb\r\n", "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\r\n-b\r\n+a\n+b\n", "a\nb\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tools, dir := open(t)
			put(t, dir+"/f", tc.file)
			must(t, tools, "patch", "patch", tc.patch)
			if got, err := os.ReadFile(dir + "/f"); err != nil || string(got) != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// A patch for one file need not name it.
func TestPatchForOneFile(t *testing.T) {
	for name, text := range map[string]string{
		"hunks":  "@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
		"blocks": "------- SEARCH\nb\n=======\nc\n+++++++ REPLACE\n",
		"diff":   "--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n",
	} {
		tools, dir := open(t)
		put(t, dir+"/f", "a\nb\n")
		must(t, tools, "patch", "path", "f", "diff", text)
		if got, _ := os.ReadFile(dir + "/f"); string(got) != "a\nc\n" {
			t.Errorf("%s: got %q", name, got)
		}
	}
}

// TestPatchSaysWhatItMakesExecutable: a new name for something that can be run, or the
// right to run it, however the patch says so.
func TestPatchSaysWhatItMakesExecutable(t *testing.T) {
	tools, dir := open(t)
	put(t, dir+"/run", "a\n")
	put(t, dir+"/text", "a\n")
	if err := os.Chmod(dir+"/run", 0o755); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"diff --git a/new b/new\nnew file mode 100755\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+a\n":     "new",
		"diff --git a/new b/new\nnew file mode 100644\n--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+a\n":     "",
		"diff --git a/text b/text\nold mode 100644\nnew mode 100755\n":                                    "text",
		"diff --git a/run b/run\nold mode 100755\nnew mode 100644\n":                                      "",
		"diff --git a/run b/git\nsimilarity index 100%\nrename from run\nrename to git\n":                 "git",
		"diff --git a/run b/git\nold mode 100755\nnew mode 100644\nrename from run\nrename to git\n":      "",
		"diff --git a/text b/git\nold mode 100644\nnew mode 100755\nrename from text\nrename to git\n":    "git",
		"diff --git a/text b/git\nsimilarity index 100%\nrename from text\nrename to git\n":               "",
		"--- a/run\n+++ b/run\n@@ -1 +1 @@\n-a\n+b\n":                                                     "",
		"*** Begin Patch\n*** Update File: run\n*** Move to: git\n@@\n-a\n+b\n*** End Patch\n":            "git",
		"diff --git a/run b/run\ndeleted file mode 100755\n--- a/run\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n": "",
		"diff --git a/run b/run\nindex 1..2 100755\n--- a/run\n+++ b/run\n@@ -1 +1 @@\n-a\n+b\n":          "",
	} {
		c, err := prepare(t, tools, "patch", "patch", text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := strings.Join(c.Plan().Executable, " "); got != want {
			t.Errorf("%s\nmakes %q executable, want %q", text, got, want)
		}
	}
}
