package program

import (
	"slices"
	"testing"
)

// TestWhatARepositoryNamesIsSetBack: what runs programs and is the repository's
// is set to what the user says, or to nothing.
func TestWhatARepositoryNamesIsSetBack(t *testing.T) {
	list := "local\x00alias.whatchanged\n!evil\x00worktree\x00alias.annotate\n!evil\x00global\x00alias.st\nstatus\x00local\x00diff.x.textconv\nevil\x00global\x00diff.x.textconv\nmine\x00local\x00user.name\nme\x00"
	settings, _, err := disarm([]byte(list), nil)
	want := []Setting{{"alias.whatchanged", ""}, {"alias.annotate", ""}, {"diff.x.textconv", "mine"}}
	if err != nil || !slices.Equal(settings, want) {
		t.Errorf("%q, %v, want %q", settings, err, want)
	}
}
