package patch_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"coder/internal/host/patch"

	"pgregory.net/rapid"
)

// files is a tree; a file that is not there has no key.
type files map[string]string

func apply(text string, before files) (after files, err error) {
	p, err := patch.Parse(text)
	if err != nil {
		return nil, err
	}
	in := make(map[string][]byte)
	for name, s := range before {
		in[name] = []byte(s)
	}
	changes, err := p.Apply(in)
	if err != nil {
		return nil, err
	}
	after = maps.Clone(before)
	for _, c := range changes {
		delete(after, c.From)
		delete(after, c.Path)
		if c.New != nil {
			after[c.Path] = string(c.New)
		}
	}
	return after, nil
}

const poem = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"

func TestApply(t *testing.T) {
	head := "--- a/f\n+++ b/f\n"
	for _, tc := range []struct {
		name, patch  string
		before, want files
	}{
		{"unified", head + "@@ -2,3 +2,3 @@\n two\n-three\n+3\n four\n", files{"f": poem}, files{"f": "one\ntwo\n3\nfour\nfive\nsix\nseven\n"}},
		{"names without prefixes", "--- f\n+++ f\n@@ -1,1 +1,1 @@\n-one\n+1\n", files{"f": "one\n"}, files{"f": "1\n"}},
		{"names with times", "--- a/f\t2024-01-01\n+++ b/f\t2024-01-02\n@@ -1 +1 @@\n-one\n+1\n", files{"f": "one\n"}, files{"f": "1\n"}},
		{"two hunks", head + "@@ -1,2 +1,1 @@\n-one\n two\n@@ -6,2 +5,3 @@\n six\n+6½\n seven\n", files{"f": poem}, files{"f": "two\nthree\nfour\nfive\nsix\n6½\nseven\n"}},
		{"wrong numbers", head + "@@ -40,2 +40,2 @@\n two\n-three\n+3\n", files{"f": poem}, files{"f": "one\ntwo\n3\nfour\nfive\nsix\nseven\n"}},
		{"wrong counts", head + "@@ -2,9 +2,7 @@\n two\n-three\n+3\n four\n", files{"f": poem}, files{"f": "one\ntwo\n3\nfour\nfive\nsix\nseven\n"}},
		{"wrong counts, another file follows", head + "@@ -2,9 +2,7 @@\n-two\n+2\n--- a/g\n+++ b/g\n@@ -1,1 +1,1 @@\n-x\n+y\n", files{"f": poem, "g": "x\n"}, files{"f": strings.Replace(poem, "two", "2", 1), "g": "y\n"}},
		{"no numbers", head + "@@ @@\n two\n-three\n+3\n", files{"f": poem}, files{"f": "one\ntwo\n3\nfour\nfive\nsix\nseven\n"}},
		{"number decides", head + "@@ -3,1 +3,1 @@\n-x\n+y\n", files{"f": "x\nx\nx\nx\n"}, files{"f": "x\nx\ny\nx\n"}},
		{"numbers all moved by the same", head + "@@ -1,2 +1,2 @@\n a\n-b\n+B\n@@ -3,1 +3,1 @@\n-x\n+y\n", files{"f": "new\na\nb\nx\nz\nx\n"}, files{"f": "new\na\nB\ny\nz\nx\n"}},
		{"empty context line lost its space", head + "@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", files{"f": "a\n\nb\n"}, files{"f": "a\n\nc\n"}},
		{"lines that look like names", head + "@@ -1,2 +1,2 @@\n--- x\n+++ y\n z\n", files{"f": "-- x\nz\n"}, files{"f": "++ y\nz\n"}},
		{"hunks that share context", head + "@@ @@\n-one\n+1\n two\n three\n@@ @@\n two\n three\n-four\n+4\n", files{"f": poem}, files{"f": "1\ntwo\nthree\n4\nfive\nsix\nseven\n"}},
		{"created", "--- /dev/null\n+++ b/d/f\n@@ -0,0 +1,2 @@\n+a\n+b\n", files{}, files{"d/f": "a\nb\n"}},
		{"deleted", "--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n", files{"f": "a\nb\n"}, files{}},
		{"inserted into an empty file", head + "@@ -0,0 +1 @@\n+a\n", files{"f": ""}, files{"f": "a\n"}},
		{"inserted behind a line by number", head + "@@ -2,0 +3 @@\n+a\n", files{"f": "1\n2\n3\n"}, files{"f": "1\n2\na\n3\n"}},
		{"git", "diff --git a/f b/f\nindex 1..2 100644\n" + head + "@@ -1 +1 @@ func x()\n-a\n+b\n", files{"f": "a\n"}, files{"f": "b\n"}},
		{"git rename", "diff --git a/f b/g\nsimilarity index 90%\nrename from f\nrename to g\n--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n", files{"f": "a\n"}, files{"g": "b\n"}},
		{"git rename alone", "diff --git a/f b/g h\nsimilarity index 100%\nrename from f\nrename to g h\n", files{"f": "a\n"}, files{"g h": "a\n"}},
		{"git empty file", "diff --git a/e b/e\nnew file mode 100644\nindex 0..0\n", files{}, files{"e": ""}},
		{"git empty file deleted", "diff --git a/e b/e\ndeleted file mode 100644\nindex 0..0\n", files{"e": ""}, files{}},
		{"quoted name", "--- \"a/t\\tb\\303\\244\"\n+++ \"b/t\\tb\\303\\244\"\n@@ -1 +1 @@\n-a\n+b\n", files{"t\tbä": "a\n"}, files{"t\tbä": "b\n"}},
		{"prose around", "Here is the patch:\n\n```diff\n" + head + "@@ -1 +1 @@\n-a\n+b\n```\nDone.\n", files{"f": "a\n"}, files{"f": "b\n"}},
		{"sent with windows line ends", strings.ReplaceAll(head+"@@ -1 +1 @@\n-a\n+b\n", "\n", "\r\n"), files{"f": "a\n"}, files{"f": "b\n"}},
		{"no newline marks", head + "@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+b\n", files{"f": "a"}, files{"f": "b\n"}},
		{"newline taken", head + "@@ -1 +1 @@\n-a\n+a\n\\ No newline at end of file\n", files{"f": "a\n"}, files{"f": "a"}},
		{"no mark, file has no last newline", head + "@@ -1,2 +1,2 @@\n a\n-b\n+c\n", files{"f": "a\nb"}, files{"f": "a\nc"}},
		{"no mark, line added to such a file", head + "@@ -1,1 +1,2 @@\n a\n+b\n", files{"f": "a"}, files{"f": "a\nb"}},
		{"windows file, plain patch", head + "@@ -1,3 +1,4 @@\n a\n-b\n+B\n+B2\n c\n", files{"f": "a\r\nb\r\nc\r\n"}, files{"f": "a\r\nB\r\nB2\r\nc\r\n"}},
		{"mixed file keeps its lines", head + "@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", files{"f": "a\r\nb\nc\r\n"}, files{"f": "a\r\nB\nc\r\n"}},
		{"byte order mark", head + "@@ -1,2 +1,2 @@\n-a\n+A\n b\n", files{"f": "\ufeffa\nb\n"}, files{"f": "\ufeffA\nb\n"}},
		{"white space at the end", head + "@@ -1,2 +1,2 @@\n a\n-b\n+B\n", files{"f": "a  \nb\t\n"}, files{"f": "a  \nB\n"}},

		{"envelope", "*** Begin Patch\n*** Update File: f\n@@\n two\n-three\n+3\n*** End Patch", files{"f": poem}, files{"f": "one\ntwo\n3\nfour\nfive\nsix\nseven\n"}},
		{"envelope without @@", "*** Begin Patch\n*** Update File: f\n-three\n+3\n*** End Patch\n", files{"f": "three\n"}, files{"f": "3\n"}},
		{"envelope with anchor", "*** Begin Patch\n*** Update File: f\n@@ class B\n-\tx\n+\ty\n*** End Patch", files{"f": "class A\n\tx\nclass B\n\tx\nclass C\n\tx\n"}, files{"f": "class A\n\tx\nclass B\n\ty\nclass C\n\tx\n"}},
		{"envelope with two anchors", "*** Begin Patch\n*** Update File: f\n@@ class B\n@@ def g\n-x\n+y\n*** End Patch", files{"f": "class A\ndef g\nx\nclass B\ndef f\nx\ndef g\nx\n"}, files{"f": "class A\ndef g\nx\nclass B\ndef f\nx\ndef g\ny\n"}},
		{"envelope adds behind an anchor", "*** Begin Patch\n*** Update File: f\n@@ b\n+c\n*** End Patch", files{"f": "a\nb\nd\n"}, files{"f": "a\nb\nc\nd\n"}},
		{"envelope add", "*** Begin Patch\n*** Add File: d/n\n+a\n+\n+b\n*** End Patch", files{}, files{"d/n": "a\n\nb\n"}},
		{"envelope delete", "*** Begin Patch\n*** Delete File: f\n*** End Patch", files{"f": poem}, files{}},
		{"envelope move", "*** Begin Patch\n*** Update File: f\n*** Move to: g\n@@\n-one\n+1\n*** End Patch", files{"f": "one\n"}, files{"g": "1\n"}},
		{"envelope end of file", "*** Begin Patch\n*** Update File: f\n@@\n-x\n+y\n*** End of File\n*** End Patch", files{"f": "x\nx\n"}, files{"f": "x\ny\n"}},
		{"envelope appends", "*** Begin Patch\n*** Update File: f\n+y\n*** End of File\n*** End Patch", files{"f": "x\n"}, files{"f": "x\ny\n"}},
		{"envelope, context without its space", "*** Begin Patch\n*** Update File: f\n@@\ntwo\n-three\n+3\nfour\n*** End Patch", files{"f": poem}, files{"f": "one\ntwo\n3\nfour\nfive\nsix\nseven\n"}},
		{"envelope, indented context without its space", "*** Begin Patch\n*** Update File: f\n@@\nf() {\n    a()\n-    b()\n+    c()\n}\n*** End Patch", files{"f": "f() {\n    a()\n    b()\n}\n"}, files{"f": "f() {\n    a()\n    c()\n}\n"}},
		{"envelope, some context without its space", "*** Begin Patch\n*** Update File: f\n@@\nf() {\n     a()\n-    b()\n+    c()\n*** End Patch", files{"f": "f() {\n    a()\n    b()\n}\n"}, files{"f": "f() {\n    a()\n    c()\n}\n"}},
		{"envelope, empty lines before its end", "*** Begin Patch\n*** Update File: f\n@@\n-three\n+3\n\n \n*** End Patch\n\n", files{"f": "three\n"}, files{"f": "3\n"}},
		{"envelope, its end indented", "  *** Begin Patch\n*** Update File: f\n@@\n-three\n+3\n *** End Patch\n", files{"f": "three\n"}, files{"f": "3\n"}},
		{"envelope, only lines that come", "*** Begin Patch\n*** Update File: f\n@@\n+y\n+z\n*** End Patch", files{"f": "x\n"}, files{"f": "x\ny\nz\n"}},
		{"envelope, only lines that come, no last line end", "*** Begin Patch\n*** Update File: f\n+y\n*** End Patch", files{"f": "x"}, files{"f": "x\ny\n"}},
		{"envelope with the headers of a diff", "*** Begin Patch\n*** Update File: f\n--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-three\n+3\n*** End Patch", files{"f": "three\n"}, files{"f": "3\n"}},
		{"envelope in a here-document", "apply_patch <<'EOF'\n*** Begin Patch\n*** Update File: f\n-three\n+3\n*** End Patch\nEOF\n", files{"f": "three\n"}, files{"f": "3\n"}},
		{"envelope in a fence", "```\n*** Begin Patch\n*** Add File: f\n+3\n*** End Patch\n```\n", files{}, files{"f": "3\n"}},
		{"search and replace", "f\n<<<<<<< SEARCH\ntwo\nthree\n=======\n2\n>>>>>>> REPLACE\n", files{"f": poem}, files{"f": "one\n2\nfour\nfive\nsix\nseven\n"}},
		{"search and replace in a fence", "Here it is:\n\nd/f.go\n```go\n<<<<<<< SEARCH\ntwo\n=======\n2\n>>>>>>> REPLACE\n```\n", files{"d/f.go": poem}, files{"d/f.go": "one\n2\nthree\nfour\nfive\nsix\nseven\n"}},
		{"search and replace, two blocks", "**f**\n<<<<<<< SEARCH\none\n=======\n1\n>>>>>>> REPLACE\n\n<<<<<<< SEARCH\nseven\n=======\n7\n8\n>>>>>>> REPLACE", files{"f": poem}, files{"f": "1\ntwo\nthree\nfour\nfive\nsix\n7\n8\n"}},
		{"search and replace, two files", "f\n<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE\ng\n<<<<<<< SEARCH\n=======\nnew\n>>>>>>> REPLACE", files{"f": "a\n"}, files{"f": "b\n", "g": "new\n"}},
		{"search and replace with line numbers", "f\n<<<<<<< SEARCH\n:start_line:2\n-------\ntwo\n=======\n2\n>>>>>>> REPLACE", files{"f": poem}, files{"f": "one\n2\nthree\nfour\nfive\nsix\nseven\n"}},
		{"search and replace with dashes", "f\n------- SEARCH\ntwo\n=======\n>>>>>>> REPLACE\n------- SEARCH\nsix\n=======\n6\n+++++++ REPLACE\n", files{"f": poem}, files{"f": "one\nthree\nfour\nfive\n6\nseven\n"}},
		{"envelope, several", "*** Begin Patch\n*** Update File: f\n@@\n-a\n+b\n\n*** Add File: n\n+n\n*** Delete File: g\n*** End Patch", files{"f": "a\n", "g": ""}, files{"f": "b\n", "n": "n\n"}},
		{"envelope, one file twice", "*** Begin Patch\n*** Update File: f\n-a\n+b\n*** Update File: f\n-b\n+c\n*** End Patch", files{"f": "a\n"}, files{"f": "c\n"}},
		{"envelope, made then changed", "*** Begin Patch\n*** Add File: f\n+b\n*** Update File: f\n-b\n+c\n*** End Patch", files{}, files{"f": "c\n"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := apply(tc.patch, tc.before)
			if err != nil || !maps.Equal(got, tc.want) {
				t.Errorf("got %q, %v\nwant %q", got, err, tc.want)
			}
		})
	}
}

func TestModes(t *testing.T) {
	const content = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"
	for _, tc := range []struct {
		name, patch string
		before      files
		path, after string
		mode        patch.Mode
	}{
		{"alone", "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", files{"f": "a\n"}, "f", "a\n", patch.Executable},
		{"taken away", "diff --git a/f b/f\nold mode 100755\nnew mode 100644\n", files{"f": "a\n"}, "f", "a\n", patch.Plain},
		{"with content", "diff --git a/f b/f\nold mode 100644\nnew mode 100755\nindex 1..2\n" + content, files{"f": "a\n"}, "f", "b\n", patch.Executable},
		{"said, but the same", "diff --git a/f b/f\nindex 1..2 100755\n" + content, files{"f": "a\n"}, "f", "b\n", patch.ModeUnspecified},
		{"of a new file", "diff --git a/f b/f\nnew file mode 100755\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", files{}, "f", "a\n", patch.Executable},
		{"with a new name", "diff --git a/f b/g\nold mode 100644\nnew mode 100755\nrename from f\nrename to g\n", files{"f": "a\n"}, "g", "a\n", patch.Executable},
		{"then content", "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n" + content, files{"f": "a\n"}, "f", "b\n", patch.Executable},
		{"not of git", content, files{"f": "a\n"}, "f", "b\n", patch.ModeUnspecified},
		{"before a list of words", "diff --git a/f b/f\nold mode 100644\nnew mode 100755\n\nindex of what follows\n", files{"f": "a\n"}, "f", "a\n", patch.Executable},
	} {
		t.Run(tc.name, func(t *testing.T) {
			p, err := patch.Parse(tc.patch)
			if err != nil {
				t.Fatal(err)
			}
			before := make(map[string][]byte)
			for name, text := range tc.before {
				before[name] = []byte(text)
			}
			c, err := p.Apply(before)
			if err != nil || len(c) != 1 || c[0].Path != tc.path || string(c[0].New) != tc.after || c[0].Mode != tc.mode {
				t.Errorf("%+v, %v", c, err)
			}
		})
	}
}

func TestApplyRefuses(t *testing.T) {
	head := "--- a/f\n+++ b/f\n"
	for _, tc := range []struct {
		name, patch string
		before      files
		say         []string
	}{
		{"not a patch", "hello\n", nil, []string{"not a patch"}},
		{"empty", "", nil, []string{"not a patch"}},
		{"no name", "@@ -1 +1 @@\n-a\n+b\n", nil, []string{"without a file name"}},
		{"no such file", head + "@@ -1 +1 @@\n-a\n+b\n", nil, []string{"f: no such file"}},
		{"exists already", "--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+a\n", files{"f": ""}, []string{"f: the file already exists"}},
		{"envelope, exists already", "*** Begin Patch\n*** Add File: f\n+a\n*** End Patch", files{"f": "a\n"}, []string{"already exists"}},
		{"moved onto another", "*** Begin Patch\n*** Update File: f\n*** Move to: g\n@@\n-a\n+b\n*** End Patch", files{"f": "a\n", "g": ""}, []string{"g: the file already exists"}},
		{"ambiguous", head + "@@ @@\n-x\n+y\n", files{"f": "x\na\nx\n"}, []string{"f, hunk 1 of 1", "2 places", "lines 1, 3"}},
		{"ambiguous, number is none of them", head + "@@ -2,1 +2,1 @@\n-x\n+y\n", files{"f": "x\na\nx\n"}, []string{"2 places"}},
		{"ambiguous anchor", "*** Begin Patch\n*** Update File: f\n@@ def g\n-x\n+y\n*** End Patch", files{"f": "def g\nx\ndef g\nx\n"}, []string{"2 places"}},
		{"ambiguous after a move", head + "@@ -1,1 +1,1 @@\n-a\n+b\n@@ -3,1 +3,1 @@\n-x\n+y\n", files{"f": "0\na\nx\nx\n"}, []string{"hunk 2 of 2", "2 places"}},
		{"not found", head + "@@ -1,3 +1,3 @@\n one\n-too\n+2\n three\n", files{"f": poem}, []string{"hunk 1 of 1", "does not contain", "    too", "nearest", "   2 two"}},
		{"nothing like it", head + "@@ -1 +1 @@\n-zzz\n+2\n", files{"f": poem}, []string{"read the file again"}},
		{"no context", "*** Begin Patch\n*** Update File: f\n@@ -1,2 +1,3 @@\n+y\n*** End Patch", files{"f": "x\n"}, []string{"no context lines"}},
		{"no such anchor", "*** Begin Patch\n*** Update File: f\n@@ z\n+y\n*** End Patch", files{"f": "x\n"}, []string{`no line "z"`}},
		{"one line deleted twice", head + "@@ @@\n-b\n+c\n@@ @@\n-b\n+d\n", files{"f": "a\nb\n"}, []string{"hunk 2 of 2"}},
		{"context that has gone", head + "@@ @@\n a\n-b\n@@ @@\n b\n-c\n", files{"f": "a\nb\nc\n"}, []string{"hunk 2 of 2"}},
		{"deletion of a file that has more", "--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n", files{"f": "a\nb\n"}, []string{"does not list", "b"}},
		{"binary", "diff --git a/f b/f\nGIT binary patch\nliteral 3\n", files{"f": "a"}, []string{"only text changes"}},
		{"neither content, name nor mode", "diff --git a/f b/f\nindex 1..2 100644\n", files{"f": "a"}, []string{"nothing to change"}},
		{"a new link", "diff --git a/f b/f\nnew file mode 120000\n--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+to\n", nil, []string{"line 2", "link"}},
		{"a link that changes", "diff --git a/f b/f\nindex 1..2 120000\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-to\n+fro\n", files{"f": "to"}, []string{"link"}},
		{"a file that becomes a link", "diff --git a/f b/f\nold mode 100644\nnew mode 120000\n", files{"f": "a"}, []string{"link"}},
		{"a submodule", "diff --git a/f b/f\nindex 1..2 160000\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-to\n+fro\n", files{"f": "to"}, []string{"submodule"}},
		{"a mode that is none", "diff --git a/f b/f\nold mode 100644\nnew mode 777\n", files{"f": "a"}, []string{"line 3", "not a file mode"}},
		{"hunk of context", head + "@@ -1 +1 @@\n a\n", files{"f": "a\n"}, []string{"changes nothing"}},
		{"envelope, strange line", "*** Begin Patch\n*** Update File: f\n@@\nx\n*** End Patch", files{"f": "a"}, []string{"line 3", "changes nothing"}},
		{"search without replace", "f\n<<<<<<< SEARCH\na\n", files{"f": "a"}, []string{"line 2", "====="}},
		{"replace without an end", "f\n<<<<<<< SEARCH\na\n=======\nb\n", files{"f": "a"}, []string{"line 2", "REPLACE"}},
		{"search without a file", "<<<<<<< SEARCH\na\n=======\nb\n>>>>>>> REPLACE", files{"f": "a"}, []string{"line 1", "path"}},
		{"search for what is not there", "f\n<<<<<<< SEARCH\nalpha\n=======\nb\n>>>>>>> REPLACE", files{"f": "alpine\n"}, []string{"does not contain"}},
		{"envelope, strange verb", "*** Begin Patch\n*** Frobnicate File: f\n*** End Patch", files{"f": "a"}, []string{"line 2"}},
		{"envelope, file without plus", "*** Begin Patch\n*** Add File: f\nabc\n*** End Patch", nil, []string{"begins with +"}},
		{"too long", strings.Repeat("x", 5<<20), nil, []string{"too long"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := apply(tc.patch, tc.before)
			if err == nil {
				t.Fatalf("got %q", got)
			}
			for _, s := range tc.say {
				if !strings.Contains(err.Error(), s) {
					t.Errorf("error %q does not say %q", err, s)
				}
			}
		})
	}
}

// fileText draws a small file of few different lines, so that places repeat.
var fileText = rapid.Custom(func(t *rapid.T) string {
	lines := rapid.SliceOfN(rapid.SampledFrom([]string{"a\n", "b\n", "c\n", "\n", "a \n", "}\n", "--- x\n", "+++ y\n", "@@ -1 +1 @@\n", "a\r\n", "\ufeffb\n", "\\ x\n"}), 0, 14).Draw(t, "lines")
	text := strings.Join(lines, "")
	if rapid.Bool().Draw(t, "bare") {
		text = strings.TrimSuffix(text, "\n")
	}
	return text
})

func TestDiffAppliedGivesTheNewFile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, new := fileText.Draw(t, "old"), fileText.Draw(t, "new")
		if old == new {
			return
		}
		text, _, _ := patch.Unified("f", []byte(old), []byte(new))
		got, err := apply(text, files{"f": old})
		if err != nil || got["f"] != new {
			t.Fatalf("got %q, %v\nwant %q\n%s", got["f"], err, new, text)
		}
	})
}

// A diff of one file applied to another touches nothing but lines of its hunks,
// if it applies at all.
func TestOnlyTheLinesOfHunksAreTouched(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, new, other := fileText.Draw(t, "old"), fileText.Draw(t, "new"), fileText.Draw(t, "other")
		text, _, _ := patch.Unified("f", []byte(old), []byte(new))
		checkTouched(t.Fatalf, text, other)
	})
}

// checkTouched applies a patch and sees that the lines that went and came are
// those the patch names, line ends and white space aside.
func checkTouched(fatalf func(string, ...any), text, before string) {
	after, err := apply(text, files{"f": before})
	if err != nil || len(after) != 1 || after["f"] == before {
		return
	}
	p, err := patch.Parse(text)
	if err != nil {
		fatalf("it applied and does not parse: %v", err)
	}
	gone, come := map[string]int{}, map[string]int{}
	for _, f := range p {
		for _, h := range f.Hunks {
			for _, l := range h.Lines {
				switch l.Op {
				case '-':
					gone[plain(l.Text)]++
				case '+':
					come[plain(l.Text)]++
				}
			}
		}
	}
	have := map[string]int{}
	for l := range strings.Lines(before) {
		have[plain(l)]++
	}
	for l, n := range gone {
		have[l] -= n
	}
	for l, n := range come {
		have[l] += n
	}
	for l := range strings.Lines(after["f"]) {
		have[plain(l)]--
	}
	for l, n := range have {
		if n != 0 && l != "" {
			fatalf("line %q is off by %d\nbefore %q\nafter  %q\n%s", l, n, before, after["f"], text)
		}
	}
}

func plain(l string) string { return strings.TrimRight(strings.TrimPrefix(l, "\ufeff"), " \t\r\n") }

func FuzzApply(f *testing.F) {
	for _, s := range []string{
		"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
		"--- a/f\n+++ b/f\n@@ -0,0 +1,2 @@\n+b\n\\ No newline at end of file\n",
		"diff --git a/f b/f\nrename from f\nrename to g\n--- a/f\n+++ b/g\n@@ -2,3 +2,3 @@ x\n a\n-b\n+c\n d\n",
		"*** Begin Patch\n*** Update File: f\n*** Move to: g\n@@ a\n b\n-c\n+d\n*** End of File\n*** Add File: h\n+x\n*** Delete File: i\n*** End Patch\n",
		"*** Begin Patch\n*** Update File: f\n@@ -1,2 +1,2 @@\n+x\n*** End Patch",
	} {
		f.Add(s, "a\nb\nc\nd\n")
		f.Add(s, "a\r\nb")
	}
	f.Fuzz(func(t *testing.T, text, before string) {
		p, err := patch.Parse(text)
		if err != nil {
			return
		}
		names := p.Names()
		if slices.Contains(names, "") {
			t.Fatalf("names %q", names)
		}
		if len(names) == 1 && names[0] == "f" && strings.ContainsRune(before, 0) == false {
			checkTouched(t.Fatalf, text, before)
		}
		_, _ = p.Apply(map[string][]byte{"f": []byte(before), "g": nil, "i": []byte("x")})
	})
}

func BenchmarkUnified1MB(b *testing.B) {
	old := []byte(strings.Repeat("a line of a large file that is not short\n", 25_000))
	new := slices.Concat(old[:500_000], []byte("!"), old[500_000:])
	for b.Loop() {
		patch.Unified("f", old, new)
	}
}
