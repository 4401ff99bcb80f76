package risk

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// plainTest reports whether a test looks at files, or compares words as text,
// and holds nothing that the shell would take for more than words. To bash that
// may be several tests.
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

// test judges the words of [[ ]]. A shell that does not know it would run what
// follows && and ||.
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
