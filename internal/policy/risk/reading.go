package risk

import "mvdan.cc/sh/v3/syntax"

// Inspect analyses a line as bash would run it, for callers that need
// its programs and their connections, and not whether it may run.
func Inspect(line string) Report { return Analyse(line, Facts{Bash: true}) }

// Position is the position of a command in its line: who starts it, and what it is connected to.
type Position struct {
	StartedBy     Starter
	Input         bool // it reads a pipe, a file or text in the line
	Output        bool // its output goes to a pipe, a file or into the line
	Writes        bool // one of its redirections may change a file
	DecidesResult bool // the line fails if it fails
	// Vars are the variables set for it alone.
	Vars []string
}

// Starter is who starts a command.
type Starter uint8

// The starters, from the least to the most certain.
const (
	StartedByOther   Starter = iota // a program that may start it, or start it elsewhere
	StartedByWrapper                // a program that only starts it: timeout, or a shell with text after -c
	StartedByLine                   // the line itself
)

// forStmt returns the place of a statement within p.
func (p Position) forStmt(s *syntax.Stmt) Position {
	p.Writes = false
	switch s.Cmd.(type) {
	case *syntax.CallExpr, *syntax.BinaryCmd, *syntax.Block, *syntax.Subshell, *syntax.TimeClause:
		p.DecidesResult = p.DecidesResult && !s.Negated && !s.Background
	default:
		p.DecidesResult = false
	}
	for _, r := range s.Redirs {
		switch r.Op {
		case syntax.DplOut:
		case syntax.RdrIn, syntax.DplIn, syntax.Hdoc, syntax.DashHdoc, syntax.WordHdoc:
			p.Input = true
		case syntax.RdrInOut:
			p.Input, p.Writes = true, true
		default:
			p.Output = p.Output || r.N == nil || r.N.Value == "1"
			p.Writes = p.Writes || r.Word == nil || r.Word.Lit() != "/dev/null"
		}
	}
	return p
}

// walkPosition is the walker's position in the line.
type walkPosition struct {
	position  Position // of the current command
	starters  int      // nested commands of the line that start it
	uncertain int      // those of them that may not start it
}

// current returns the place of the current command.
func (s walkPosition) current() Position {
	switch {
	case s.uncertain > 0:
		s.position.StartedBy = StartedByOther
	case s.starters > 0:
		s.position.StartedBy = StartedByWrapper
	default:
		s.position.StartedBy = StartedByLine
	}
	return s.position
}

// passThrough are the programs that only run another one, with their own input and output.
var passThrough = wordList("env command exec nice ionice time timeout stdbuf")

// judgeCertain judges what a shell certainly runs.
func (w *walker) judgeCertain(judge func()) {
	w.uncertain--
	judge()
	w.uncertain++
}

// changesOnlyShell reports whether statements only change the
// shell that runs them: its folder, its variables, its umask.
func changesOnlyShell(stmts []*syntax.Stmt) bool {
	if len(stmts) != 1 {
		return false
	}
	switch c := stmts[0].Cmd.(type) {
	case *syntax.DeclClause:
		for _, a := range c.Args {
			if a.Name == nil {
				return false
			}
		}
		return len(c.Args) > 0
	case *syntax.CallExpr:
		if len(c.Args) == 0 {
			return len(c.Assigns) > 0
		}
		name := c.Args[0].Lit()
		return name == "cd" || len(c.Args) > 1 && wordList("pushd popd unset umask").has(name)
	}
	return false
}
