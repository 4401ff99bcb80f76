package program

import (
	"slices"
	"strings"
	"testing"
)

// TestWhatARepositoryNamesIsSetBack: what runs programs and is the repository's
// is set to what the user says, or to nothing.
func TestWhatARepositoryNamesIsSetBack(t *testing.T) {
	list := listed("local", "file:.git/config", "alias.whatchanged\n!evil", "worktree", "file:.git/w", "alias.annotate\n!evil",
		"global", "file:/home/u/.gitconfig", "alias.st\nstatus", "local", "file:.git/config", "diff.x.textconv\nevil",
		"global", "file:/home/u/.gitconfig", "diff.x.textconv\nmine", "local", "file:.git/config", "user.name\nme")
	settings, _, err := NewOutside(nil, "/home/u/work").disableSettings(list)
	want := append(slices.Clone(BaseSettings), Setting{"alias.whatchanged", ""}, Setting{"alias.annotate", ""}, Setting{"diff.x.textconv", "mine"})
	if err != nil || !slices.Equal(settings, want) {
		t.Errorf("%q, %v, want %q", settings, err, want)
	}
}

// listed is a list of settings as git gives it, with those that every run has.
func listed(fields ...string) []byte {
	for _, s := range BaseSettings {
		fields = append(fields, "command", "command line:", s.Key+"\n"+s.Value)
	}
	return []byte(strings.Join(fields, "\x00") + "\x00")
}
