package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestHiddenFoldersInWhatIsShown, such as credentials beside a cache in a home that is
// hidden but for caches, stay hidden but for what is shown in them in turn.
func TestHiddenFoldersInWhatIsShown(t *testing.T) {
	eachBackend(t, func(t *testing.T, s *Sandbox) {
		w := newWorld(t)
		in := func(name string) string { return filepath.Join(w.root, "home", name) }
		for _, name := range []string{".local/other", ".local/uv/tool", ".local/uv/keys/a", ".local/uv/keys/named", ".local/uv/keys/sub/b", ".local/uv/z"} {
			if err := os.MkdirAll(filepath.Dir(in(name)), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(in(name), []byte(filepath.Base(name)+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		l := w.limits()
		l.Hide = []string{in(".local"), in(".local/uv/keys"), in(".local/uv/z")}
		l.Show = []string{in(".local/uv"), in(".local/uv/keys/named")}
		got := w.run(t, wrap(t, s, l), `cd $W/../home/.local; cat other uv/tool uv/keys/a uv/keys/named uv/keys/sub/b uv/z; echo x > uv/keys/new && echo written`)
		if strings.TrimSpace(got.stdout) != "tool\nnamed" {
			t.Errorf("%+v", got)
		}
	})
}
