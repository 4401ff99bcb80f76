package patch_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"coder/internal/host/patch"
)

func TestUnified(t *testing.T) {
	for _, tc := range []struct {
		name, path     string
		old, new       []byte
		want           string
		added, deleted int
	}{
		{"same", "f", []byte("a\n"), []byte("a\n"), "", 0, 0},
		{"changed", "d/f", []byte("a\nb\nc\n"), []byte("a\nB\nc\n"), "--- a/d/f\n+++ b/d/f\n@@ -1,3 +1,3 @@\n a\n-b\n+B\n c\n", 1, 1},
		{"created", "f", nil, []byte("a\n"), "--- /dev/null\n+++ b/f\n@@ -0,0 +1,1 @@\n+a\n", 1, 0},
		{"filled", "f", []byte{}, []byte("a\n"), "--- a/f\n+++ b/f\n@@ -0,0 +1,1 @@\n+a\n", 1, 0},
		{"deleted", "f", []byte("a\n"), nil, "--- a/f\n+++ /dev/null\n@@ -1,1 +0,0 @@\n-a\n", 0, 1},
		{"lines that look like names", "f", []byte("-- x\n"), []byte("++ y\n"), "--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n--- x\n+++ y\n", 1, 1},
		{"no final newline", "f", []byte("a"), []byte("a\n"), "--- a/f\n+++ b/f\n@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n", 1, 1},
		{"odd name", "a\nb\x1b", []byte("a\n"), []byte("b\n"), "--- \"a/a\\012b\\033\"\n+++ \"b/a\\012b\\033\"\n@@ -1,1 +1,1 @@\n-a\n+b\n", 1, 1},
		{"binary", "f", []byte("a\x00"), []byte("b\n"), "Binary files a/f and b/f differ\n", 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, added, deleted := patch.Unified(tc.path, tc.old, tc.new)
			if got != tc.want || added != tc.added || deleted != tc.deleted {
				t.Errorf("Unified = %q +%d -%d\nwant      %q +%d -%d", got, added, deleted, tc.want, tc.added, tc.deleted)
			}
		})
	}
}

func TestCut(t *testing.T) {
	for _, tc := range []struct {
		name, in     string
		lines, chars int
		want         string
		cut          bool
	}{
		{"fits", "a\nb\n", 2, 4, "a\nb\n", false},
		{"lines", "a\nb\nc", 2, 100, "a\nb\n", true},
		{"characters, between lines", "aa\nbb\ncc\n", 9, 7, "aa\nbb\n", true},
		{"one long line", "世世世世", 9, 3, "世世世", true},
		{"last line without end", "a\nb", 2, 9, "a\nb", false},
		{"nothing", "", 0, 0, "", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if got, cut := patch.Truncate(tc.in, tc.lines, tc.chars); got != tc.want || cut != tc.cut {
				t.Errorf("Cut = %q, %v, want %q, %v", got, cut, tc.want, tc.cut)
			}
		})
	}
}

// A diff, applied by somebody else's program, gives the new file.
func FuzzUnified(f *testing.F) {
	program, err := exec.LookPath("patch")
	if err != nil {
		f.Skip("patch is not installed")
	}
	f.Add("a\nb\nc\n", "a\nB\nc\n")
	f.Add("", "x")
	f.Add("x\r\ny", "x\ny\r\n")
	f.Fuzz(func(t *testing.T, old, new string) {
		if old == new || strings.ContainsRune(old+new, 0) || !utf8.ValidString(old+new) {
			return
		}
		text, added, deleted := patch.Unified("f", []byte(old), []byte(new))
		if text == "" || added+deleted == 0 {
			t.Fatalf("no diff from %q to %q", old, new)
		}
		file := filepath.Join(t.TempDir(), "f")
		if err := os.WriteFile(file, []byte(old), 0o644); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(program, "--binary", "-s", file)
		cmd.Stdin = strings.NewReader(text)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("patch: %v\n%s\n%s", err, out, text)
		}
		got, err := os.ReadFile(file)
		if err != nil && new != "" || !bytes.Equal(got, []byte(new)) {
			t.Fatalf("patched %q, want %q\n%s", got, new, text)
		}
	})
}
