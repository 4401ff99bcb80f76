package risk

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// floods judges a loop that starts processes and does not wait for them: where
// nothing is seen to end it, it does so until the machine has no more to give.
func (w *walker) floods(loop syntax.Node, cond, body []*syntax.Stmt) {
	starts, ends := false, false
	note := func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			starts = starts || n.Background || n.Coprocess || n.Disown
		case *syntax.CallExpr:
			ends = ends || len(n.Args) > 0 && loopEnds[n.Args[0].Lit()]
		}
		return true
	}
	for _, s := range append(cond[:len(cond):len(cond)], body...) {
		syntax.Walk(s, note)
	}
	for _, s := range cond {
		ends = ends || asksForChange(s)
	}
	if starts && !ends {
		w.find(Approve, "starts processes without end", w.text(loop))
	}
}

// loopEnds are the commands that end a loop, or have it wait.
var loopEnds = set("break exit return wait read")

// asksForChange reports whether a condition tests what may change.
func asksForChange(s *syntax.Stmt) (changes bool) {
	syntax.Walk(s, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.TestClause, *syntax.ArithmCmd:
			changes = changes || varies(n)
		case *syntax.CallExpr:
			if len(n.Args) > 0 {
				name := n.Args[0].Lit()
				changes = changes || (name == "[" || name == "test") && varies(n)
			}
		}
		return true
	})
	return changes
}

// varies reports whether a test looks at a variable, at what a command prints or
// at a file.
func varies(test syntax.Node) (yes bool) {
	_, calculates := test.(*syntax.ArithmCmd)
	syntax.Walk(test, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.UnaryTest:
			yes = true
		case *syntax.Lit:
			yes = yes || len(n.Value) == 2 && strings.ContainsAny(n.Value, "defghkprsuwxLOGNS") && n.Value[0] == '-' || calculates && strings.Trim(n.Value, "0123456789") != ""
		}
		return true
	})
	return yes
}
