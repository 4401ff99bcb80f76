package repofile

import (
	"errors"
	"testing"
)

// TestNothingOfAStrangerBecomesARepository: no spelling of .git is laid out, nor a
// link that leads there, nor what names another store of objects.
func TestNothingOfAStrangerBecomesARepository(t *testing.T) {
	for _, name := range []string{
		".git", ".git/config", ".GIT/config", ".Git", "sub/.git/config", "a/b/.git", "sub/.git", ".git/", "./.git", "x/../.git/hooks/pre-commit",
		"git~1", "GIT~1/config", "sub/git~12/config", ".git.", ".git /config", ".git . ./config", ".git::$INDEX_ALLOCATION/config", ".git:x",
		".g\u200cit/config", "\ufeff.git", ".gi\u200dt", ".git\u00ad", ".g\u2063it", ".g\x01it", ".git\ufe0f", `.git\config`, `sub\.GIT\config`,
		"x/objects/info/alternates", "objects/info/alternates", "x/Objects/info/HTTP-alternates",
	} {
		if err := CheckLayout(name, ""); !errors.Is(err, ErrGit) {
			t.Errorf("%q: %v", name, err)
		}
		if err := CheckLayout("link", name); !errors.Is(err, ErrGit) {
			t.Errorf("a link to %q: %v", name, err)
		}
	}
	for _, name := range []string{
		"a.git", ".gitignore", ".gitattributes", ".gitmodules", ".github/workflows/x.yml", "git", "git~x", "git~", ".gitx", "x.git/config", "info/alternates",
		"alternates", "objects/info/packs", "docs/.git-hooks", "ü/ß", "a b.c", "...", ".",
	} {
		if err := CheckLayout(name, name); err != nil {
			t.Errorf("%q: %v", name, err)
		}
	}
}
