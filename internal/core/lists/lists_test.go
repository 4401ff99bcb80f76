package lists

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

func TestAListHasSectionsCommentsAndEntries(t *testing.T) {
	got := Sections("# source: a, date: 2026-01-01\nfree\n\n[one two]\n a b \n# no entry\nc\n[]\nd\r\n[x\n")
	if want := map[string][]string{"": {"free", "d", "[x"}, "one two": {"a b", "c"}}; !reflect.DeepEqual(got, want) {
		t.Errorf("%q", got)
	}
	for range Entries("a\nb") {
		break
	}
}

// TestEveryListNamesItsSourceAndDate also finds entries that stand twice in a section.
func TestEveryListNamesItsSourceAndDate(t *testing.T) {
	var files []string
	for _, pattern := range []string{"../secret/data/*.txt", "../secret/testdata/gitleaks.txt", "../../policy/risk/data/*.txt"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %q, %v", pattern, found, err)
		}
		files = append(files, found...)
	}
	header := regexp.MustCompile(`^# source: .+, date: \d{4}-\d\d-\d\d\n`)
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !header.Match(text) {
			t.Errorf("%s does not begin with its source and date", file)
		}
		seen := make(map[[2]string]bool)
		for section, entry := range Entries(string(text)) {
			if key := [2]string{section, entry}; seen[key] && !strings.HasSuffix(file, "gitleaks.txt") {
				t.Errorf("%s: %s stands twice in [%s]", file, entry, section)
			} else {
				seen[key] = true
			}
		}
	}
}
