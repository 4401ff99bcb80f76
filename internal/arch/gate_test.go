package arch

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
	"testing"
)

// mayPrepare are the files that have a tool prepare a call, and why they may. Whoever holds
// a prepared call can run it, so all others hold a grant.Call, which runs only with its grant.
var mayPrepare = map[string]string{
	"policy/grant/grant.go":  "the gate",
	"tool/files/buffer.go":   "a tool around a tool",
	"tool/codenav/edited.go": "a tool around a tool",
	"app/rerunrecord.go":     "a tool around a tool",
}

// mayRunUnjudged are the files that have calls run without a verdict, and why they may.
var mayRunUnjudged = map[string]string{
	"agent/orchestrator/bang.go":   "commands that the person typed, where their settings say so",
	"agent/orchestrator/verify.go": "checks of a fixed list, in folders that the person trusts",
	"agent/hooks/run.go":           "hooks of the person's settings, and of what they trust",
	"agent/toolrun/gate.go":        "the round that says so",
}

func TestCallsAreRunByTheGateAlone(t *testing.T) {
	prepares, unjudged := make(map[string]bool), make(map[string]bool)
	for _, p := range list(t) {
		for file := range p.files {
			name := within(file)
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					x, ok := n.X.(*ast.Ident)
					prepares[name] = prepares[name] || n.Sel.Name == "Prepare" && !(ok && x.Name == "grant")
					unjudged[name] = unjudged[name] || n.Sel.Name == "Unjudged"
				case *ast.KeyValueExpr:
					key, ok := n.Key.(*ast.Ident)
					unjudged[name] = unjudged[name] || ok && key.Name == "Unjudged"
				}
				return true
			})
		}
	}
	for kind, c := range map[string]struct {
		found map[string]bool
		may   map[string]string
	}{"prepares calls": {prepares, mayPrepare}, "runs calls without a verdict": {unjudged, mayRunUnjudged}} {
		for name, does := range c.found {
			if does && c.may[name] == "" && !strings.HasPrefix(name, "arch/") {
				t.Errorf("%s %s: use toolrun, or say in the table why not", name, kind)
			}
		}
		for name := range c.may {
			if !c.found[name] {
				t.Errorf("%s no longer %s: strike it from the table", name, kind)
			}
		}
	}
}

// TestSessionsAreWorkedInByTheHost: no face opens a session or runs its inputs by itself, so what
// is done at the beginning and at the end is the same for all.
func TestSessionsAreWorkedInByTheHost(t *testing.T) {
	runs := []string{"Supervise", "RunSaid", "TakeUp", "Move"}
	for _, p := range list(t) {
		street, _, _ := strings.Cut(p.name, "/")
		if !slices.Contains([]string{"ui", "slash", "cli", "fleet"}, street) {
			continue
		}
		for file := range p.files {
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok {
					return true
				}
				if s, ok := call.Fun.(*ast.SelectorExpr); ok && slices.Contains(runs, s.Sel.Name) {
					if of, ok := s.X.(*ast.SelectorExpr); !ok || of.Sel.Name != "host" {
						t.Errorf("%s calls %s: use serve.Host", within(file), s.Sel.Name)
					}
				}
				return true
			})
		}
	}
}
