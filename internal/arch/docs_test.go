package arch

import (
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// TestTheWalksLeadSomewhere holds docs/ARCHITECTURE.md to the code: each step
// that is named as file:function is there.
func TestTheWalksLeadSomewhere(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	steps := regexp.MustCompile("`([a-z0-9/_]+\\.go):([A-Za-z]+)`").FindAllStringSubmatch(string(text), -1)
	if len(steps) < 30 {
		t.Errorf("only %d steps are named", len(steps))
	}
	for _, step := range steps {
		code, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(step[1])))
		if err != nil {
			t.Error(err)
			continue
		}
		if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + step[2] + `[\[(]`).Match(code) {
			t.Errorf("%s has no function %s", step[1], step[2])
		}
	}
}
