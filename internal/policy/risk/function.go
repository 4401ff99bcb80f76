package risk

import (
	"mvdan.cc/sh/v3/syntax"
)

// nothingYet stands for what a function does that runs nothing.
const nothingYet = ""

// function judges a definition: sooner or later its body runs.
func (w *walker) function(c *syntax.FuncDecl) {
	if c.Name == nil {
		w.unknown("a construct that is not understood", w.text(c))
		w.perhaps(func() { w.stmt(c.Body) })
		return
	}
	if w.functions == nil {
		w.functions = make(map[string][]string)
	}
	name := c.Name.Value
	w.functions[name] = append(w.functions[name], nothingYet)
	w.defining = append(w.defining, name)
	w.perhaps(func() { w.stmt(c.Body) })
	w.defining = w.defining[:len(w.defining)-1]
}

// RunsItself is the text of the finding that a line starts itself over and over.
const RunsItself = "a function that runs itself"

// circles reports whether a function runs itself, or one that does. What is in
// done is finished if true, and under way if false.
func (w *walker) circles(name string, done map[string]bool) bool {
	if finished, seen := done[name]; seen {
		return !finished
	}
	done[name] = false
	for _, next := range w.functions[name] {
		if next != nothingYet && w.circles(next, done) {
			return true
		}
	}
	done[name] = true
	return false
}

// startsPlainly reports whether a pipeline begins with the name of a command.
func startsPlainly(s *syntax.Stmt) bool {
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
