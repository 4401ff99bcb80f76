package risk

import (
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// noCommand is the placeholder for a function's command that runs nothing.
const noCommand = ""

// RecursionFinding is the text of the finding that a line restarts itself endlessly.
const RecursionFinding = "a function that runs itself"

// isRecursive reports whether a function runs itself, directly or through
// others. In done, true means finished and false in progress.
func (w *walker) isRecursive(name string, done map[string]bool) bool {
	if finished, seen := done[name]; seen {
		return !finished
	}
	done[name] = false
	for _, next := range w.functions[name] {
		if next != noCommand && w.isRecursive(next, done) {
			return true
		}
	}
	done[name] = true
	return false
}

// startsWithName reports whether a pipeline begins with the name of a command.
func startsWithName(s *syntax.Stmt) bool {
	for s != nil && !s.Negated {
		switch c := s.Cmd.(type) {
		case *syntax.BinaryCmd:
			s = c.X
		case *syntax.CallExpr:
			return len(c.Assigns) == 0 && len(c.Args) > 0
		default:
			return false
		}
	}
	return false
}

// judgeLoop judges a loop that starts processes without waiting for them: if nothing visibly ends it, it
// runs until the machine has no resources left.
func (w *walker) judgeLoop(loop syntax.Node, cond, body []*syntax.Stmt) {
	starts, ends := false, false
	note := func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.Stmt:
			starts = starts || n.Background || n.Coprocess || n.Disown
		case *syntax.CallExpr:
			ends = ends || len(n.Args) > 0 && loopEnds.has(n.Args[0].Lit())
		}
		return true
	}
	for _, s := range append(cond[:len(cond):len(cond)], body...) {
		syntax.Walk(s, note)
	}
	for _, s := range cond { // a test of a changing value
		syntax.Walk(s, func(n syntax.Node) bool {
			switch n := n.(type) {
			case *syntax.TestClause, *syntax.ArithmCmd:
				ends = ends || isVariable(n)
			case *syntax.CallExpr:
				if len(n.Args) > 0 {
					name := n.Args[0].Lit()
					ends = ends || (name == "[" || name == "test") && isVariable(n)
				}
			}
			return true
		})
	}
	if starts && !ends {
		w.addFinding(Approve, "starts processes endlessly", w.sourceText(loop))
	}
}

// loopEnds are the commands that end a loop or make it wait.
var loopEnds = wordList("break exit return wait read")

// isVariable reports whether a test depends on a variable, a command's output or a file.
func isVariable(test syntax.Node) (yes bool) {
	_, calculates := test.(*syntax.ArithmCmd)
	syntax.Walk(test, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.ParamExp, *syntax.CmdSubst, *syntax.UnaryTest:
			yes = true
		case *syntax.Lit:
			yes = yes || len(n.Value) == 2 && strings.ContainsAny(n.Value, "defghkprsuwxLOGNS") && n.Value[0] == '-' ||
				calculates && strings.Trim(n.Value, "0123456789") != ""
		}
		return true
	})
	return yes
}
