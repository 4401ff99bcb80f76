package risk

import "mvdan.cc/sh/v3/syntax"

// Read analyses a line as bash would run it, for callers that need
// its programs and their connections, and not whether it may run.
func Read(line string) Report { return Analyse(line, Facts{Bash: true}) }

// Place is the position of a command in its line: who starts it, and what it is connected to.
type Place struct {
	By      Starter
	Input   bool // it reads a pipe, a file or text in the line
	Output  bool // its output goes to a pipe, a file or into the line
	Writes  bool // one of its redirections may change a file
	Decides bool // the line fails if it fails
	// Given are the variables set for it alone.
	Given []string
}

// Starter is who starts a command.
type Starter uint8

// The starters, from the least to the most certain.
const (
	Another Starter = iota // a program that may start it, or start it elsewhere
	Wrapper                // a program that only starts it: timeout, or a shell with text after -c
	Line                   // the line itself
)

// in returns the place of a statement within p.
func (p Place) in(s *syntax.Stmt) Place {
	p.Writes = false
	switch s.Cmd.(type) {
	case *syntax.CallExpr, *syntax.BinaryCmd, *syntax.Block, *syntax.Subshell, *syntax.TimeClause:
		p.Decides = p.Decides && !s.Negated && !s.Background
	default:
		p.Decides = false
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

// standing is the walker's position in the line.
type standing struct {
	place    Place // of the current command
	behind   int   // nested commands of the line that start it
	doubtful int   // those of them that may not start it
}

// here returns the place of the current command.
func (s standing) here() Place {
	switch {
	case s.doubtful > 0:
		s.place.By = Another
	case s.behind > 0:
		s.place.By = Wrapper
	default:
		s.place.By = Line
	}
	return s.place
}

// passing are the programs that only run another one, with their own input and output.
var passing = words("env command exec nice ionice time timeout stdbuf")

// surely judges what a shell certainly runs.
func (w *walker) surely(judge func()) {
	w.doubtful--
	judge()
	w.doubtful++
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
		return name == "cd" || len(c.Args) > 1 && words("pushd popd unset umask").has(name)
	}
	return false
}
