package git_test

import (
	"strings"
	"testing"

	"coder/internal/tool/git"
)

// Git shows what it keeps from its own store, where nothing else can hide it.
func TestADiffLeavesOutWhatIsNotToBeShown(t *testing.T) {
	r := newRepo(t)
	for _, name := range []string{".env", "sub dir/.env", "plain.txt", "odd\tname.env", "b/x b/.env"} {
		r.put(name, "KEY=hush\n")
	}
	r.git("add", "-A", "-f")
	o := r.options("")
	o.IsHidden = func(name string) bool { return strings.HasSuffix(name, ".env") }
	v := r.must(git.Diff(o), `{"staged": true}`)
	if strings.Count(v.Diff, "hush") != 1 || !strings.Contains(v.Diff, "plain.txt") || !strings.Contains(v.Note, "are left out") {
		t.Errorf("%+v", v)
	}
	if v := r.must(git.Diff(o), `{"staged": true, "path": "sub dir/.env"}`); !strings.Contains(v.Diff, "hush") {
		t.Errorf("what was asked for is not shown: %+v", v)
	}
}
