package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// mayNameTools are the packages outside tool that hold names of tools, and why they may: as
// data for people, never to decide by.
var mayNameTools = []struct{ pkg, names, why string }{
	{"core/event", "jobs_list todoread skill question", "which titles on record are the program's own words, to be translated"},
	{"policy/rule", "read write bash fetch", "words of the rules that people write"},
	{"config", "read write bash", "the same words in the defaults"},
	{"policy/judge", "read write bash fetch git_commit todowrite", "samples that /permissions shows"},
}

// otherWords are words that mean something else than the tool of that name, in these packages.
var otherWords = map[string]string{
	"bash":     "agent/bang cli host/shell policy/risk",
	"edit":     "cli policy/risk slash ui/acp",
	"fetch":    "host/program fleet/checkout fleet/fleetcli ui/acp",
	"grep":     "policy/risk policy/rule",
	"jobs":     "cli slash",
	"memory":   "app cli host/sandbox slash",
	"list":     "cli host/program policy/risk ui/acp",
	"lsp":      "app",
	"patch":    "fleet/checkout fleet/fleetcli fleet/worker report/export report/fulltext ui/term/markdown",
	"question": "agent/rerun cli ui/browser ui/events ui/term",
	"read":     "agent/bang authored/rulefile core/event host/repofile policy/risk record/store/jsonl ui/acp ui/i18n",
	"skill":    "policy/risk",
	"task":     "agent/orchestrator agent/supervisor agent/verify fleet/engine fleet/fleetcli fleet/queue report/transcript slash ui/browser",
	"write":    "core/event ui/i18n",
}

// TestNoToolIsKnownByItsName: a decision about tools looks at their class or at the
// plan of a call, so that a tool can come, go and be renamed within its street.
func TestNoToolIsKnownByItsName(t *testing.T) {
	names := ownTools(t)
	may := make(map[string]bool) // package and name → used
	for _, m := range mayNameTools {
		for name := range strings.FieldsSeq(m.names) {
			may[m.pkg+" "+name] = false
		}
	}
	for name, pkgs := range otherWords {
		for pkg := range strings.FieldsSeq(pkgs) {
			may[pkg+" "+name] = false
		}
	}
	for _, p := range list(t) {
		if p.name == "tool" || strings.HasPrefix(p.name, "tool/") || p.name == "arch" {
			continue
		}
		for file, text := range p.files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, word := range wordsIn(t, file, text) {
				key := p.name + " " + word
				if _, known := may[key]; known {
					may[key] = true
				} else if slices.Contains(names, word) {
					t.Errorf("%s names the tool %s: ask tool.ClassOf, or say in the table why not", file, word)
				}
			}
		}
	}
	for key, used := range may {
		if !used {
			t.Errorf("%s: strike it from the table", key)
		}
	}
}

// ownTools are the names in the table of our own tools.
func ownTools(t *testing.T) (names []string) {
	f, err := parser.ParseFile(token.NewFileSet(), path.Join("..", "tool", "class.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if row, ok := n.(*ast.CompositeLit); ok && row.Type == nil && len(row.Elts) > 1 {
			if word, ok := row.Elts[0].(*ast.BasicLit); ok {
				name, _ := strconv.Unquote(word.Value)
				names = append(names, name)
			}
		}
		return true
	})
	if len(names) < 20 {
		t.Fatalf("only %d tools were found", len(names))
	}
	return names
}

// wordsIn are the texts that a file holds.
func wordsIn(t *testing.T, file, text string) (words []string) {
	f, err := parser.ParseFile(token.NewFileSet(), file, text, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			word, _ := strconv.Unquote(lit.Value)
			words = append(words, word)
		}
		return true
	})
	return words
}
