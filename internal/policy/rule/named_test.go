package rule

import (
	"strings"
	"testing"
)

// TestWhatGitShowsOfFilesIsKnown, whatever letters are joined and whatever else is asked for.
func TestWhatGitShowsOfFilesIsKnown(t *testing.T) {
	for line, want := range map[string]bool{
		"log -p": true, "log -wp": true, "log -bu -3": true, "log -sp": true, "log -zU9": true, "log --check": true, "log -O/dev/null -Rp": true, "log -L1,9:a": true,
		"show": true, "show --stat -wp": true, "show -s -ap": true, "show --stat --check": true, "diff --stat --check": true, "diff-tree -s -wp HEAD": true,
		"status -v": true, "status -svb": true, "status --verbose": true, "reflog -wp": true, "stash show": true,
		"log": false, "log -5": false, "log --stat": false, "log -Spassword": false, "log -n5 -w": false, "log --oneline --graph": false, "show --stat": false, "show -s": false,
		"diff --stat": false, "diff --name-only -w": false, "status": false, "status -sb": false, "status -uno": false, "branch -v": false,
	} {
		if got := showsContent(strings.Fields(line)); got != want {
			t.Errorf("git %s: %v", line, got)
		}
	}
}
