package arch

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheWalksLeadSomewhere holds docs/ARCHITECTURE.md to the code: each step
// that is named as file:function is there.
func TestTheWalksLeadSomewhere(t *testing.T) {
	text, err := os.ReadFile(top("docs/ARCHITECTURE.md"))
	if err != nil {
		t.Fatal(err)
	}
	steps := regexp.MustCompile("`([a-z0-9/_]+\\.go):([A-Za-z]+)`").FindAllStringSubmatch(string(text), -1)
	if len(steps) < 30 {
		t.Errorf("only %d steps are named", len(steps))
	}
	for _, step := range steps {
		code, err := os.ReadFile(locate(step[1]))
		if err != nil {
			t.Error(err)
			continue
		}
		if !regexp.MustCompile(`(?m)^func (\([^)]*\) )?` + step[2] + `[\[(]`).Match(code) {
			t.Errorf("%s has no function %s", step[1], step[2])
		}
	}
}

// TestThePromisesHaveTheirTests holds the table of docs/SECURITY.md to the code: each test
// that it names is there.
func TestThePromisesHaveTheirTests(t *testing.T) {
	text, err := os.ReadFile(top("docs/SECURITY.md"))
	if err != nil {
		t.Fatal(err)
	}
	tests := make(map[string]bool)
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		code, err := os.ReadFile(path)
		for _, found := range regexp.MustCompile(`(?m)^func (Test\w+)\(`).FindAllSubmatch(code, -1) {
			tests[string(found[1])] = true
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile("`(Test\\w+)`").FindAllStringSubmatch(string(text), -1)
	if len(named) < 20 {
		t.Errorf("only %d tests are named", len(named))
	}
	for _, name := range named {
		if !tests[name[1]] {
			t.Errorf("docs/SECURITY.md names %s, which is no test", name[1])
		}
	}
}

// TestTheWayToARunIsListed holds the list of files from a verdict to a run, whose mutants
// are all killed, to the code: they are there, and so is every file that handles grants.
func TestTheWayToARunIsListed(t *testing.T) {
	text, err := os.ReadFile(top("docs/adr/0049-a-call-runs-only-with-a-grant.md"))
	if err != nil {
		t.Fatal(err)
	}
	listed := make(map[string]bool)
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-z/]+\\.go)` \\|").FindAllStringSubmatch(string(text), -1) {
		if listed[row[1]] = true; !exists(locate(row[1])) {
			t.Errorf("there is no %s", row[1])
		}
	}
	if len(listed) < 8 {
		t.Errorf("only %d files are listed", len(listed))
	}
	handles := regexp.MustCompile(`\bgrant\.(Grant|Approval)\b|\.granted\(\)|\bgrant\b.*\.Run\(`)
	for _, p := range list(t) {
		for file, code := range p.files {
			name := within(file)
			if handles.MatchString(code) && !listed[name] {
				t.Errorf("%s handles grants and is not in the list", name)
			}
		}
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
