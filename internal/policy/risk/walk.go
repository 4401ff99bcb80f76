package risk

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (w *walker) walkStmts(ss []*syntax.Stmt) {
	decides := w.position.DecidesResult
	for i, s := range ss {
		w.position.DecidesResult = decides && i == len(ss)-1
		w.walkStmt(s)
	}
}

func (w *walker) walkStmt(s *syntax.Stmt) {
	if s == nil {
		return
	}
	feed, at := w.stdin, w.position
	for _, r := range s.Redirs {
		w.judgeRedirect(r)
	}
	w.position = at.forStmt(s)
	switch {
	case s.Background || s.Coprocess || s.Disown:
		w.recordEffect("continues in the background")
		w.judgeSubshell(func() { w.walkCommand(s.Cmd) })
	case !w.bash && redirectsAll(s): // the background, in some shells
		w.judgeOptional(func() { w.walkCommand(s.Cmd) })
	default:
		w.walkCommand(s.Cmd)
	}
	// A shell without &> runs the words after it as a separate command.
	call, ok := s.Cmd.(*syntax.CallExpr)
	for _, r := range s.Redirs {
		if w.bash || !ok || r.Op != syntax.RdrAll && r.Op != syntax.AppAll {
			continue
		}
		for i, word := range call.Args {
			if i > 0 && word.Pos().After(r.OpPos) {
				w.judgeCommand(w.evalWords(call.Args[i:]))
				break
			}
		}
	}
	w.stdin, w.position = feed, at
}

// redirectsAll reports whether all output is redirected with &>.
func redirectsAll(s *syntax.Stmt) bool {
	return slices.ContainsFunc(s.Redirs, func(r *syntax.Redirect) bool {
		return r.Op == syntax.RdrAll ||
			r.Op == syntax.AppAll
	})
}

// judgeSubshell judges what runs in a separate shell, whose directory changes do not affect the rest.
func (w *walker) judgeSubshell(judge func()) {
	dirs, lost := w.dirs, w.dirUnknown
	judge()
	w.dirs, w.dirUnknown = dirs, lost
}

// judgeOptional judges what may or may not run: the shell may be in its old directory or in a new one.
func (w *walker) judgeOptional(judge func()) {
	dirs, lost := w.dirs, w.dirUnknown
	judge()
	w.dirs, w.dirUnknown = union(dirs, w.dirs), lost || w.dirUnknown
}

func union(a, b []string) []string {
	if slices.Equal(a, b) {
		return a
	}
	both := slices.Clone(a)
	for _, s := range b {
		if !slices.Contains(both, s) {
			both = append(both, s)
		}
	}
	return both
}

func (w *walker) walkCommand(c syntax.Command) {
	switch c := c.(type) {
	case nil:
	case *syntax.CallExpr:
		w.walkCall(c)
	case *syntax.BinaryCmd:
		w.walkBinary(c)
	case *syntax.Block:
		w.walkStmts(c.Stmts)
	case *syntax.Subshell:
		w.judgeSubshell(func() { w.walkStmts(c.Stmts) })
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			w.judgeOptional(func() { w.walkStmts(c.Cond); w.walkStmts(c.Then) })
		}
	case *syntax.WhileClause:
		w.judgeOptional(func() { w.walkStmts(c.Cond); w.walkStmts(c.Do) })
		w.judgeLoop(c, c.Cond, c.Do)
	case *syntax.ForClause:
		w.walkFor(c)
	case *syntax.CaseClause:
		w.evalWord(c.Word)
		for _, item := range c.Items {
			w.evalWords(item.Patterns)
			w.judgeOptional(func() { w.walkStmts(item.Stmts) })
		}
	case *syntax.TimeClause:
		// If time is a program and not a keyword, a builtin or an assignment would mean something else.
		if !startsWithName(c.Stmt) {
			w.recordDialect(false)
		}
		if c.Stmt != nil {
			w.judgeOptional(func() { w.walkStmt(c.Stmt) })
		}
	case *syntax.TestClause:
		w.walkTestClause(c)
	default:
		w.recordEffect("does more than run commands")
		w.walkRareCommand(c)
	}
}

// walkCall judges a simple command, and the variables it assigns.
func (w *walker) walkCall(c *syntax.CallExpr) {
	args := w.evalWords(c.Args)
	for _, a := range c.Assigns {
		if w.judgeAssign(a, len(args) == 0); a.Name != nil {
			w.position.Vars = append(slices.Clip(w.position.Vars), a.Name.Value)
		}
	}
	if len(args) == 0 {
		return
	}
	// Without extended patterns, !(command) is a subshell.
	if g, ok := c.Args[0].Parts[0].(*syntax.ExtGlob); ok && g.Pattern != nil {
		w.judgeScript(g.Pattern.Value)
	}
	for _, f := range w.defining { // what a wrapper runs is not a function
		if name := args[0]; name.isExact() && !slices.Contains(w.functions[f], name.text) {
			w.functions[f] = append(w.functions[f], name.text)
		}
	}
	w.judgeCommand(args)
}

// walkTestClause judges a test in double brackets. The simplest tests mean the same in every shell: without [[, a
// command that does not exist.
func (w *walker) walkTestClause(c *syntax.TestClause) {
	words, ok := w.parsePlainTest(c.X)
	if !ok || !w.bash && strings.Contains(w.sourceText(c), "\n") {
		w.recordEffect(dialectReason)
		w.recordDialect(false)
		w.recordUnknownSet() // by an index or by arithmetic
		w.walkTest(c.X)
		return
	}
	args := []arg{{text: "[["}}
	for _, word := range words {
		a := w.evalWord(word)
		w.judgeIndex(a)
		args = append(args, a)
	}
	w.recordCommand(append(args, arg{text: "]]"}))
}

// walkRareCommand judges commands that are never read-only.
func (w *walker) walkRareCommand(c syntax.Command) {
	switch c := c.(type) {
	case *syntax.FuncDecl:
		// Its body runs sooner or later.
		if c.Name == nil {
			w.addUnknown("a construct that could not be parsed", w.sourceText(c))
			w.judgeOptional(func() { w.walkStmt(c.Body) })
			return
		}
		if w.functions == nil {
			w.functions = make(map[string][]string)
		}
		name := c.Name.Value
		w.functions[name] = append(w.functions[name], noCommand)
		w.defining = append(w.defining, name)
		w.judgeOptional(func() { w.walkStmt(c.Body) })
		w.defining = w.defining[:len(w.defining)-1]
	case *syntax.CoprocClause:
		w.addUnknown(dialectReason, w.sourceText(c)) // shells differ about which word is its name
		w.judgeSubshell(func() { w.walkStmt(c.Stmt) })
	case *syntax.ArithmCmd:
		w.recordDialect(true)
		w.judgeArithmetic(c.X)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			// characters that quotes do not hide from the shell
			if _, word := x.(*syntax.Word); !word && strings.ContainsAny(w.sourceText(x), "|&;<>()\n#") {
				w.addUnknown(dialectReason, w.sourceText(c))
			}
			w.judgeArithmetic(x)
		}
	case *syntax.DeclClause:
		for _, a := range c.Args {
			w.judgeAssign(a, false)
		}
	default:
		w.addUnknown("a construct that could not be parsed", w.sourceText(c))
	}
}

func (w *walker) walkBinary(c *syntax.BinaryCmd) {
	w.position.DecidesResult = w.position.DecidesResult && c.Op == syntax.AndStmt
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		if c.Op == syntax.PipeAll {
			w.recordDialect(false)
		}
		first, feed, at := len(w.report.Simple), w.stdin, w.position
		w.position.Output = true
		w.judgeSubshell(func() { w.walkStmt(c.X) })
		w.position = at
		w.position.Input = true
		w.stdin.kind, w.stdin.text = stdinPiped, ""
		for _, s := range w.report.Simple[min(first, len(w.report.Simple)):] {
			if fetcherNames.has(programName(s.Name)) {
				w.stdin.kind = stdinFetched
			}
		}
		w.judgeSubshell(func() { w.walkStmt(c.Y) })
		w.stdin = feed
	case syntax.AndStmt:
		w.walkStmt(c.X)
		if endsInCd(c.X) && len(w.nextDirs) > 0 && !w.dirUnknown {
			w.dirs = w.nextDirs
		}
		w.walkStmt(c.Y)
	default: // ||
		w.judgeOptional(func() { w.walkStmt(c.X) })
		w.judgeOptional(func() { w.walkStmt(c.Y) })
	}
}

func (w *walker) walkFor(c *syntax.ForClause) {
	if c.Select {
		w.recordEffect("it asks something")
	}
	switch loop := c.Loop.(type) {
	case *syntax.WordIter:
		for _, item := range w.evalWords(loop.Items) {
			w.mayRead(item)
			w.recordValue(item)
			w.recordSet(loop.Name.Value, item)
		}
		if len(loop.Items) == 0 {
			w.recordSet(loop.Name.Value, arg{certainty: dynamic})
		}
	case *syntax.CStyleLoop:
		w.recordEffect("does more than run commands")
		w.recordDialect(false)
		w.judgeArithmetic(loop.Init)
		w.judgeArithmetic(loop.Cond)
		w.judgeArithmetic(loop.Post)
		if loop.Cond == nil {
			w.judgeLoop(c, nil, c.Do)
		}
	}
	w.judgeOptional(func() { w.walkStmts(c.Do) })
}

// parsePlainTest reports whether a test only checks files or compares words as text, and has nothing that a
// shell would treat as more than words. For bash these may be several tests.
func (w *walker) parsePlainTest(x syntax.TestExpr) (words []*syntax.Word, ok bool) {
	switch x := x.(type) {
	case *syntax.Word:
		return []*syntax.Word{x}, !slices.ContainsFunc(x.Parts, func(p syntax.WordPart) bool { return !isPlainPart(p) })
	case *syntax.ParenTest:
		words, ok = w.parsePlainTest(x.X)
		return words, ok && w.bash
	case *syntax.UnaryTest:
		words, ok = w.parsePlainTest(x.X)
		return words, ok && x.Op != syntax.TsVarSet && x.Op != syntax.TsRefVar && x.Op != syntax.TsOptSet
	case *syntax.BinaryTest:
		left, plainLeft := w.parsePlainTest(x.X)
		right, plainRight := w.parsePlainTest(x.Y)
		switch x.Op {
		case syntax.AndTest, syntax.OrTest, syntax.TsReMatch:
			return append(left, right...), plainLeft && plainRight && w.bash
		case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch, syntax.TsNewer, syntax.TsOlder, syntax.TsDevIno:
			return append(left, right...), plainLeft && plainRight
		}
	}
	return nil, false
}

func isPlainPart(p syntax.WordPart) bool {
	switch p := p.(type) {
	case *syntax.Lit:
		return !strings.ContainsAny(p.Value, "|&;<>()`\\#")
	case *syntax.SglQuoted:
		return !p.Dollar
	case *syntax.DblQuoted:
		return !p.Dollar && !slices.ContainsFunc(p.Parts, func(q syntax.WordPart) bool {
			_, text := q.(*syntax.Lit)
			return !text && !isPlainPart(q)
		})
	case *syntax.ParamExp:
		return isPlainParam(p)
	}
	return false
}

// walkTest judges the words of [[ ]]. A shell without [[ would run what follows && and ||.
func (w *walker) walkTest(x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.Word:
		w.judgeIndex(w.evalWord(x))
		w.evaluatesVars = true
	case *syntax.UnaryTest:
		w.walkTest(x.X)
	case *syntax.ParenTest:
		w.walkTest(x.X)
	case *syntax.BinaryTest:
		if _, bare := x.Y.(*syntax.Word); bare && (x.Op == syntax.AndTest || x.Op == syntax.OrTest) {
			w.dialect.hides = true
		}
		w.walkTest(x.X)
		w.walkTest(x.Y)
	}
}
