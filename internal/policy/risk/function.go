package risk

import (
	"slices"

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

// calls notes what the bodies being judged run by name. What a wrapper runs is
// no function.
func (w *walker) calls(name arg) {
	for _, f := range w.defining {
		if name.exact() && !slices.Contains(w.functions[f], name.text) {
			w.functions[f] = append(w.functions[f], name.text)
		}
	}
}

// RunsItself is the text of the finding that a line starts itself over and over.
const RunsItself = "a function that runs itself"

// judgeFunctions looks at the functions of the whole line. One that runs itself
// may do so until the machine has no more processes to give.
func (w *walker) judgeFunctions() {
	done := make(map[string]bool, len(w.functions))
	for name := range w.functions {
		if w.circles(name, done) {
			w.find(Approve, RunsItself, name)
			break
		}
	}
	for i, c := range w.report.Simple {
		_, w.report.Simple[i].local = w.functions[c.Name]
	}
}

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

// timed judges what time measures. Where it is a program and no keyword, a
// builtin or an assignment would not be what it is here.
func (w *walker) timed(c *syntax.TimeClause) {
	if !startsPlainly(c.Stmt) {
		w.differs(false)
	}
	if c.Stmt != nil {
		w.perhaps(func() { w.stmt(c.Stmt) })
	}
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
