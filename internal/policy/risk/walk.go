package risk

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

func (w *walker) stmts(ss []*syntax.Stmt) {
	decides := w.place.Decides
	for i, s := range ss {
		w.place.Decides = decides && i == len(ss)-1
		w.stmt(s)
	}
}

func (w *walker) stmt(s *syntax.Stmt) {
	if s == nil {
		return
	}
	feed, at := w.feed, w.place
	for _, r := range s.Redirs {
		w.redirect(r)
	}
	w.place = at.in(s)
	switch {
	case s.Background || s.Coprocess || s.Disown:
		w.changes("continues in the background")
		w.apart(func() { w.command(s.Cmd) })
	case !w.bash && ampersand(s): // the background, in some shells
		w.perhaps(func() { w.command(s.Cmd) })
	default:
		w.command(s.Cmd)
	}
	// A shell without &> runs the words after it as a separate command.
	call, ok := s.Cmd.(*syntax.CallExpr)
	for _, r := range s.Redirs {
		if w.bash || !ok || r.Op != syntax.RdrAll && r.Op != syntax.AppAll {
			continue
		}
		for i, word := range call.Args {
			if i > 0 && word.Pos().After(r.OpPos) {
				w.run(w.words(call.Args[i:]))
				break
			}
		}
	}
	w.feed, w.place = feed, at
}

// ampersand reports whether all output is redirected with &>.
func ampersand(s *syntax.Stmt) bool {
	return slices.ContainsFunc(s.Redirs, func(r *syntax.Redirect) bool { return r.Op == syntax.RdrAll || r.Op == syntax.AppAll })
}

// apart judges what runs in a separate shell, whose directory changes do not affect the rest.
func (w *walker) apart(judge func()) {
	dirs, lost := w.dirs, w.lost
	judge()
	w.dirs, w.lost = dirs, lost
}

// perhaps judges what may or may not run: the shell may be in its old directory or in a new one.
func (w *walker) perhaps(judge func()) {
	dirs, lost := w.dirs, w.lost
	judge()
	w.dirs, w.lost = union(dirs, w.dirs), lost || w.lost
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

func (w *walker) command(c syntax.Command) {
	switch c := c.(type) {
	case nil:
	case *syntax.CallExpr:
		args := w.words(c.Args)
		for _, a := range c.Assigns {
			if w.assign(a, len(args) == 0); a.Name != nil {
				w.place.Given = append(slices.Clip(w.place.Given), a.Name.Value)
			}
		}
		if len(args) > 0 {
			// Without extended patterns, !(command) is a subshell.
			if g, ok := c.Args[0].Parts[0].(*syntax.ExtGlob); ok && g.Pattern != nil {
				w.script(g.Pattern.Value)
			}
			for _, f := range w.defining { // what a wrapper runs is not a function
				if name := args[0]; name.exact() && !slices.Contains(w.functions[f], name.text) {
					w.functions[f] = append(w.functions[f], name.text)
				}
			}
			w.run(args)
		}
	case *syntax.BinaryCmd:
		w.binary(c)
	case *syntax.Block:
		w.stmts(c.Stmts)
	case *syntax.Subshell:
		w.apart(func() { w.stmts(c.Stmts) })
	case *syntax.IfClause:
		for ; c != nil; c = c.Else {
			w.perhaps(func() { w.stmts(c.Cond); w.stmts(c.Then) })
		}
	case *syntax.WhileClause:
		w.perhaps(func() { w.stmts(c.Cond); w.stmts(c.Do) })
		w.floods(c, c.Cond, c.Do)
	case *syntax.ForClause:
		w.forClause(c)
	case *syntax.CaseClause:
		w.word(c.Word)
		for _, item := range c.Items {
			w.words(item.Patterns)
			w.perhaps(func() { w.stmts(item.Stmts) })
		}
	case *syntax.TimeClause:
		// If time is a program and not a keyword, a builtin or an assignment would mean something else.
		if !startsPlainly(c.Stmt) {
			w.differs(false)
		}
		if c.Stmt != nil {
			w.perhaps(func() { w.stmt(c.Stmt) })
		}
	case *syntax.TestClause:
		// The simplest tests mean the same in every shell: without [[, a command that does not exist.
		words, ok := w.plainTest(c.X)
		if !ok || !w.bash && strings.Contains(w.text(c), "\n") {
			w.changes(otherwiseRead)
			w.differs(false)
			w.setsAny() // by an index or by arithmetic
			w.test(c.X)
			return
		}
		args := []arg{{text: "[["}}
		for _, word := range words {
			a := w.word(word)
			w.index(a)
			args = append(args, a)
		}
		w.record(append(args, arg{text: "]]"}))
	default:
		w.changes("does more than run commands")
		w.rareCommand(c)
	}
}

// rareCommand judges commands that are never read-only.
func (w *walker) rareCommand(c syntax.Command) {
	switch c := c.(type) {
	case *syntax.FuncDecl:
		// Its body runs sooner or later.
		if c.Name == nil {
			w.unknown("a construct that could not be parsed", w.text(c))
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
	case *syntax.CoprocClause:
		w.unknown(otherwiseRead, w.text(c)) // shells differ about which word is its name
		w.apart(func() { w.stmt(c.Stmt) })
	case *syntax.ArithmCmd:
		w.differs(true)
		w.arithmetic(c.X)
	case *syntax.LetClause:
		for _, x := range c.Exprs {
			if _, word := x.(*syntax.Word); !word && strings.ContainsAny(w.text(x), "|&;<>()\n#") { // characters that quotes do not hide from the shell
				w.unknown(otherwiseRead, w.text(c))
			}
			w.arithmetic(x)
		}
	case *syntax.DeclClause:
		for _, a := range c.Args {
			w.assign(a, false)
		}
	default:
		w.unknown("a construct that could not be parsed", w.text(c))
	}
}

func (w *walker) binary(c *syntax.BinaryCmd) {
	w.place.Decides = w.place.Decides && c.Op == syntax.AndStmt
	switch c.Op {
	case syntax.Pipe, syntax.PipeAll:
		if c.Op == syntax.PipeAll {
			w.differs(false)
		}
		first, feed, at := len(w.report.Simple), w.feed, w.place
		w.place.Output = true
		w.apart(func() { w.stmt(c.X) })
		w.place = at
		w.place.Input = true
		w.feed.kind, w.feed.text = piped, ""
		for _, s := range w.report.Simple[min(first, len(w.report.Simple)):] {
			if fetchers.has(base(s.Name)) {
				w.feed.kind = fetched
			}
		}
		w.apart(func() { w.stmt(c.Y) })
		w.feed = feed
	case syntax.AndStmt:
		w.stmt(c.X)
		if endsInCd(c.X) && len(w.arrived) > 0 && !w.lost {
			w.dirs = w.arrived
		}
		w.stmt(c.Y)
	default: // ||
		w.perhaps(func() { w.stmt(c.X) })
		w.perhaps(func() { w.stmt(c.Y) })
	}
}

func (w *walker) forClause(c *syntax.ForClause) {
	if c.Select {
		w.changes("it asks something")
	}
	switch loop := c.Loop.(type) {
	case *syntax.WordIter:
		for _, item := range w.words(loop.Items) {
			w.mayRead(item)
			w.holds(item)
			w.sets(loop.Name.Value, item)
		}
		if len(loop.Items) == 0 {
			w.sets(loop.Name.Value, arg{known: dynamic})
		}
	case *syntax.CStyleLoop:
		w.changes("does more than run commands")
		w.differs(false)
		w.arithmetic(loop.Init)
		w.arithmetic(loop.Cond)
		w.arithmetic(loop.Post)
		if loop.Cond == nil {
			w.floods(c, nil, c.Do)
		}
	}
	w.perhaps(func() { w.stmts(c.Do) })
}

// plainTest reports whether a test only checks files or compares words as text, and has nothing that a
// shell would treat as more than words. For bash these may be several tests.
func (w *walker) plainTest(x syntax.TestExpr) (words []*syntax.Word, ok bool) {
	switch x := x.(type) {
	case *syntax.Word:
		return []*syntax.Word{x}, !slices.ContainsFunc(x.Parts, func(p syntax.WordPart) bool { return !plainPart(p) })
	case *syntax.ParenTest:
		words, ok = w.plainTest(x.X)
		return words, ok && w.bash
	case *syntax.UnaryTest:
		words, ok = w.plainTest(x.X)
		return words, ok && x.Op != syntax.TsVarSet && x.Op != syntax.TsRefVar && x.Op != syntax.TsOptSet
	case *syntax.BinaryTest:
		left, plainLeft := w.plainTest(x.X)
		right, plainRight := w.plainTest(x.Y)
		switch x.Op {
		case syntax.AndTest, syntax.OrTest, syntax.TsReMatch:
			return append(left, right...), plainLeft && plainRight && w.bash
		case syntax.TsMatch, syntax.TsMatchShort, syntax.TsNoMatch, syntax.TsNewer, syntax.TsOlder, syntax.TsDevIno:
			return append(left, right...), plainLeft && plainRight
		}
	}
	return nil, false
}

func plainPart(p syntax.WordPart) bool {
	switch p := p.(type) {
	case *syntax.Lit:
		return !strings.ContainsAny(p.Value, "|&;<>()`\\#")
	case *syntax.SglQuoted:
		return !p.Dollar
	case *syntax.DblQuoted:
		return !p.Dollar && !slices.ContainsFunc(p.Parts, func(q syntax.WordPart) bool {
			_, text := q.(*syntax.Lit)
			return !text && !plainPart(q)
		})
	case *syntax.ParamExp:
		return plainParam(p)
	}
	return false
}

// test judges the words of [[ ]]. A shell without [[ would run what follows && and ||.
func (w *walker) test(x syntax.TestExpr) {
	switch x := x.(type) {
	case *syntax.Word:
		w.index(w.word(x))
		w.calculates = true
	case *syntax.UnaryTest:
		w.test(x.X)
	case *syntax.ParenTest:
		w.test(x.X)
	case *syntax.BinaryTest:
		if _, bare := x.Y.(*syntax.Word); bare && (x.Op == syntax.AndTest || x.Op == syntax.OrTest) {
			w.dialect.hides = true
		}
		w.test(x.X)
		w.test(x.Y)
	}
}
