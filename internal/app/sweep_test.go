package app

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// The oldest goes first, what is in use stays, and within the bound nothing goes.
func TestBound(t *testing.T) {
	for name, tc := range map[string]struct {
		most int64
		left string
	}{
		"all fits":      {100, "a b c d"},
		"exactly":       {40, "a b c d"},
		"the oldest":    {39, "b c d"},
		"several":       {25, "b d"},
		"what is used":  {0, "b"},
		"nothing there": {-1, "b"},
	} {
		dir := t.TempDir()
		for i, file := range []string{"s1/a", "s2/b", "s1/c", "s3/d"} {
			path := filepath.Join(dir, file)
			at := time.Unix(int64(1e9+i), 0)
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, make([]byte, 10), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(path, at, at); err != nil {
				t.Fatal(err)
			}
		}
		dropped := limitDirSize(dir, tc.most, func(path string) bool { return strings.Contains(path, "s2") })
		if want := int64(4-len(strings.Fields(tc.left))) * 10; dropped != want {
			t.Errorf("%s: %d bytes are gone, want %d", name, dropped, want)
		}
		var left []string
		paths, err := filepath.Glob(dir + "/*/*")
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range paths {
			left = append(left, filepath.Base(p))
		}
		slices.Sort(left)
		if got := strings.Join(left, " "); got != tc.left {
			t.Errorf("%s: left are %q, want %q", name, got, tc.left)
		}
	}
	limitDirSize(filepath.Join(t.TempDir(), "absent"), 1, nil)
}
