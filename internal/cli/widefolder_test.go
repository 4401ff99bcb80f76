package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"coder/internal/app"
	"coder/internal/ui/i18n"
)

// The root of the system and the person's home are no projects, whichever way they
// are written; what lies below them may be one.
func TestFoldersThatAreNoProjectAreWarnedOf(t *testing.T) {
	home, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(t.TempDir(), "home")
	if err := os.Symlink(home, linked); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ lang, home, root, want string }{
		{"en", home, "/", "the root of the system"},
		{"en", home, home, "your home folder"},
		{"en", linked, home, "your home folder"},
		{"en", home, linked, "your home folder"},
		{"en", linked, linked, "your home folder"},
		{"zh-CN", home, home, "主目录"},
		{"en", home, filepath.Join(home, "project"), ""},
		{"en", "", "/srv", ""},
		{"en", home, filepath.Dir(home), "your home folder is in this folder"},
		{"en", home, "/etc", "a system folder"},
		{"zh-CN", home, "/usr", "系统"},
		{"en", home, "/etc/nginx", ""},
	} {
		inv := &invocation{printer: i18n.For(tt.lang), Env: Env{Env: app.Env{Environ: []string{"HOME=" + tt.home}}}}
		if got := inv.wideFolderWarning(tt.root); !strings.Contains(got, tt.want) || tt.want == "" && got != "" {
			t.Errorf("%s at home in %q: %q", tt.root, tt.home, got)
		}
	}
}
