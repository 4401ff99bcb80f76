package risk

import "mvdan.cc/sh/v3/syntax"

// Read reads a line as bash would, for those who ask which programs it runs and how
// they are connected, and not whether it may run.
func Read(line string) Report { return Analyse(line, Facts{Bash: true}) }

// Place is where a command stands in its line: who starts it, and what it is
// connected with.
type Place struct {
	By      Starter
	Input   bool // it reads a pipe, a file or text of the line
	Output  bool // what it prints goes to a pipe, a file or into the line
	Writes  bool // a redirection of its own may change a file
	Decides bool // the line fails if it does
	// Given are the variables that are set for it alone.
	Given []string
}

// Starter is who starts a command.
type Starter uint8

// The starters, from the one that is least sure to start it.
const (
	Another Starter = iota // a program that may do so, or do it elsewhere
	Wrapper                // a program that does only that: timeout, or a shell with text after -c
	Line                   // the line itself
)

// in is the place of a statement within p.
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

// standing is where the walker is in the line.
type standing struct {
	place    Place // of what is judged
	behind   int   // commands of the line that start it, one behind the other
	doubtful int   // those of them that may not start it
}

// here is the place of the command that is judged now.
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

// passing are the programs that do no more than run the one they are given, with all
// they have themselves.
var passing = words("env command exec nice ionice time timeout stdbuf")

// surely judges what a shell is given to run.
func (w *walker) surely(judge func()) {
	w.doubtful--
	judge()
	w.doubtful++
}

// changesOnlyShell reports whether statements do nothing but change the shell that
// runs them: its folder, its variables, what it lets new files be.
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
