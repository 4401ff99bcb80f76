package arch

import (
	"cmp"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTheWalksLeadSomewhere holds docs/design/architecture.md to the code: each step
// that is named as file:function is there.
func TestTheWalksLeadSomewhere(t *testing.T) {
	text, err := os.ReadFile(top("docs/design/architecture.md"))
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

// TestThePromisesHaveTheirTests holds docs/design/security.md and docs/FAULTS.md to the code:
// each test, script and screen that they name is there.
func TestThePromisesHaveTheirTests(t *testing.T) {
	tests := make(map[string]bool)
	err := filepath.WalkDir(top("."), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") && !strings.HasSuffix(path, "/providertest/providertest.go") {
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
	for page, most := range map[string]int{"docs/design/security.md": 20, "docs/FAULTS.md": 100} {
		text, err := os.ReadFile(top(page))
		if err != nil {
			t.Fatal(err)
		}
		named := regexp.MustCompile(`\bTest[A-Z]\w+`).FindAllString(string(text), -1)
		if len(named) < most {
			t.Errorf("%s names only %d tests", page, len(named))
		}
		for _, name := range named {
			if !tests[name] {
				t.Errorf("%s names %s, which is no test", page, name)
			}
		}
		for _, list := range regexp.MustCompile("(scripts?|TestScreens) (`[a-z_*`, ]+`)").FindAllStringSubmatch(string(text), -1) {
			pattern := map[bool]string{true: "cmd/coder/testdata/screens/%s*", false: "cmd/coder/testdata/script/%s.txtar"}[list[1] == "TestScreens"]
			for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(list[2], -1) {
				if found, err := filepath.Glob(top(strings.Replace(pattern, "%s", name[1], 1))); err != nil || len(found) == 0 {
					t.Errorf("%s names %s, which is no script or screen", page, name[1])
				}
			}
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

// TestTheLinksOfTheDocumentsLeadSomewhere follows every relative link of every page: the file
// is there, and so is the heading.
func TestTheLinksOfTheDocumentsLeadSomewhere(t *testing.T) {
	links := 0
	err := filepath.WalkDir(top("."), func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && len(d.Name()) > 2 || d.Name() == "bin") {
			return cmp.Or(err, fs.SkipDir)
		}
		if d.IsDir() || !strings.HasSuffix(path, ".md") || strings.Contains(path, "/internal/") {
			return nil // the model's texts are no pages
		}
		text, err := os.ReadFile(path)
		for _, link := range regexp.MustCompile(`\]\(([^)\s]+)\)`).FindAllStringSubmatch(withoutCode(string(text)), -1) {
			if regexp.MustCompile(`^[a-z]+:`).MatchString(link[1]) {
				continue
			}
			links++
			file, heading, _ := strings.Cut(link[1], "#")
			target := filepath.Join(filepath.Dir(path), file)
			if file == "" {
				target = path
			}
			if !exists(target) {
				t.Errorf("%s links to %s, which is not there", path, link[1])
			} else if heading != "" && !headings(t, target)[heading] {
				t.Errorf("%s links to %s, which has no such heading", path, link[1])
			}
		}
		return err
	})
	if err != nil || links < 80 {
		t.Errorf("%d links, %v", links, err)
	}
}

// withoutCode is a page without its fences and code, where brackets are no links.
func withoutCode(text string) string {
	text = regexp.MustCompile("(?ms)^ *```.*?^ *```").ReplaceAllString(text, "")
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(text, "")
}

// headings are the names by which links reach the headings of a page.
func headings(t *testing.T, path string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]bool)
	for _, h := range regexp.MustCompile(`(?m)^#+ (.+)$`).FindAllStringSubmatch(string(text), -1) {
		name := regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(h[1]), "")
		all[strings.ReplaceAll(name, " ", "-")] = true
	}
	return all
}

// TestTheExampleForContributorsCompiles builds the slash command of CONTRIBUTING.md, and the line that adds it to All.
func TestTheExampleForContributorsCompiles(t *testing.T) {
	text, err := os.ReadFile(top("CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	fence := regexp.MustCompile("(?s)`(internal/slash/\\w+\\.go)`:\n\n   ```go\n(.*?)   ```").FindSubmatch(text)
	row := regexp.MustCompile("(?m)^2\\. Add `(.+),` to `All`").FindSubmatch(text)
	if fence == nil || row == nil {
		t.Fatal("CONTRIBUTING.md has no example of a slash command")
	}
	example := regexp.MustCompile("(?m)^   ").ReplaceAllString(string(fence[2]), "") +
		"\nfunc exampleRow(w Deps) []Command { return []Command{" + string(row[1]) + "} }\n"
	folder := t.TempDir()
	source := filepath.Join(folder, "example.go")
	overlay, _ := json.Marshal(map[string]any{"Replace": map[string]string{string(fence[1]): source}})
	if err := cmp.Or(os.WriteFile(source, []byte(example), 0o600),
		os.WriteFile(filepath.Join(folder, "overlay.json"), overlay, 0o600)); err != nil {
		t.Fatal(err)
	}
	build := exec.Command("go", "build", "-overlay", filepath.Join(folder, "overlay.json"), "./internal/slash")
	build.Dir = top(".")
	if out, err := build.CombinedOutput(); err != nil {
		t.Errorf("the example in CONTRIBUTING.md: %v\n%s", err, out)
	}
}

// TestWhatABuildSetsIsThere holds the linker's flags to the code: the linker ignores a variable that is not there.
func TestWhatABuildSetsIsThere(t *testing.T) {
	for _, file := range []string{"Makefile", "testkit/release/main.go"} {
		text, err := os.ReadFile(top(file))
		if err != nil {
			t.Fatal(err)
		}
		set := regexp.MustCompile(`-X coder/(internal/\w+)\.(\w+)=`).FindAllStringSubmatch(string(text), -1)
		if len(set) < 2 {
			t.Errorf("%s sets %d variables", file, len(set))
		}
		for _, one := range set {
			sources, _ := filepath.Glob(top(one[1] + "/*.go")) // the pattern is valid
			declared := regexp.MustCompile(`(?m)^var (\w+, )*` + one[2] + `(, \w+)* (= .*)?string$`)
			found := false
			for _, source := range sources {
				code, err := os.ReadFile(source)
				found = found || err == nil && declared.Match(code)
			}
			if !found {
				t.Errorf("%s sets %s.%s, which is no text variable", file, one[1], one[2])
			}
		}
	}
}
