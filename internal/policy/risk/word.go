package risk

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// certainty is how much is known about a word before the line runs.
type certainty uint8

const (
	exact   certainty = iota // text is what the program gets
	vague                    // a plain variable or pattern: any number of words, but only words
	dynamic                  // computed at run time
)

// arg is a word without its quotes.
type arg struct {
	text  string
	known certainty
	home  bool // begins with an unquoted ~
	whole bool // one word, whatever the variables' values
	end   uint // offset after the word in its text; 0 if it is not in the text
}

func (a arg) exact() bool { return a.known == exact }

// is reports whether the word is certainly one of words.
func (a arg) is(words ...string) bool {
	return a.known == exact && slices.Contains(words, a.text)
}

func (a arg) option() bool { return len(a.text) > 1 && a.text[0] == '-' }

// word removes quotes and judges substitutions.
func (w *walker) word(word *syntax.Word) arg {
	if word == nil {
		return arg{}
	}
	if len(word.Parts) == 1 {
		if lit, ok := word.Parts[0].(*syntax.Lit); ok && (!strings.ContainsAny(lit.Value, "\\*?[{~") || lit.Value == "[" || lit.Value == "{}") {
			return arg{text: lit.Value, end: lit.ValueEnd.Offset()}
		}
	}
	var b builder
	for _, p := range word.Parts {
		w.part(&b, p)
	}
	a := arg{text: b.String(), known: b.known, home: b.home, end: word.End().Offset()}
	if unquotedPattern(b.bare.String()) {
		a.known = max(a.known, vague)
	} else {
		a.whole = a.known == vague && staysWhole(word)
	}
	return a
}

// staysWhole reports whether variables are only in double quotes, and none is a list.
func staysWhole(word *syntax.Word) bool {
	for _, p := range word.Parts {
		if _, bare := p.(*syntax.ParamExp); bare {
			return false
		}
		if q, ok := p.(*syntax.DblQuoted); ok && slices.ContainsFunc(q.Parts, func(p syntax.WordPart) bool {
			v, ok := p.(*syntax.ParamExp)
			return ok && (v.Param == nil || v.Param.Value == "@")
		}) {
			return false
		}
	}
	return true
}

// builder builds a word. bare is its unquoted part, with \x01 for the rest.
type builder struct {
	strings.Builder
	bare  strings.Builder
	known certainty
	home  bool
}

func (b *builder) quoted(s string) {
	b.WriteString(s)
	b.bare.WriteByte(1)
}

func (w *walker) part(b *builder, p syntax.WordPart) {
	switch p := p.(type) {
	case *syntax.Lit:
		if b.Len() == 0 && b.bare.Len() == 0 && strings.HasPrefix(p.Value, "~") {
			b.home = true
		}
		for i := 0; i < len(p.Value); i++ {
			if p.Value[i] != '\\' || i+1 == len(p.Value) {
				b.WriteByte(p.Value[i])
				b.bare.WriteByte(p.Value[i])
				continue
			}
			if i++; p.Value[i] != '\n' {
				b.quoted(p.Value[i : i+1])
			}
		}
	case *syntax.SglQuoted:
		// After $, shells differ in the meaning of a backslash, and so in where the quotes end.
		b.quoted(p.Value)
		if !p.Dollar {
			return
		}
		w.differs(strings.Contains(p.Value, `\'`))
		if strings.Contains(p.Value, `\`) {
			b.known = dynamic
		}
	case *syntax.DblQuoted:
		if b.bare.WriteByte(1); p.Dollar {
			w.changes(otherwiseRead) // bash translates it
		}
		for _, q := range p.Parts {
			if lit, ok := q.(*syntax.Lit); ok {
				b.quoted(unquote(lit.Value, "$`\"\\\n"))
			} else {
				w.part(b, q)
			}
		}
	case *syntax.ParamExp:
		w.param(b, p)
	case *syntax.CmdSubst:
		b.quoted(w.text(p))
		b.known = dynamic
		w.substitutes(p, p.Stmts, true)
	case *syntax.ProcSubst:
		b.quoted(w.text(p))
		b.known = dynamic
		w.substitutes(p, p.Stmts, p.Op == syntax.CmdIn)
	case *syntax.ArithmExp:
		b.quoted(w.text(p))
		b.known = dynamic
		w.arithmetic(p.X)
	case *syntax.ExtGlob:
		b.quoted(w.text(p))
		b.known = dynamic
		w.changes(otherwiseRead) // in bash too, depending on its options
		w.dialect.differs = true
	default:
		b.known = dynamic
		w.unknown("a word that could not be parsed", w.text(p))
	}
}

// plainParam reports whether only a variable's value is expanded.
func plainParam(p *syntax.ParamExp) bool {
	return p.Param != nil && p.Exp == nil && p.Repl == nil && p.Slice == nil && p.Index == nil &&
		!p.Excl && !p.Length && !p.Width && p.Names == 0
}

func (w *walker) param(b *builder, p *syntax.ParamExp) {
	b.quoted(w.text(p))
	if plainParam(p) {
		b.known = max(b.known, vague)
		return
	}
	b.known = dynamic
	w.quotesWithin(p)
	if p.Excl && p.Names == 0 {
		w.evaluates() // the value may be a variable with an index
	}
	if p.Exp != nil {
		if p.Exp.Op == syntax.OtherParamOps && p.Exp.Word.Lit() == "P" {
			w.unknown("expands a variable as a prompt, which may run commands", w.text(p))
		}
		value := w.word(p.Exp.Word)
		if op := p.Exp.Op; p.Param != nil && (op == syntax.AssignUnset || op == syntax.AssignUnsetOrNull) {
			w.holds(value)
			w.sets(p.Param.Value, value)
		}
	}
	if p.Repl != nil {
		w.word(p.Repl.Orig)
		w.word(p.Repl.With)
	}
	w.arithmetic(p.Index)
	if p.Slice != nil {
		w.arithmetic(p.Slice.Offset)
		w.arithmetic(p.Slice.Length)
	}
}

// quotesWithin judges single quotes in an expansion or in arithmetic. Within
// double quotes or a here-document, they are plain text to a shell, but the
// text between them is not; in arithmetic they always are.
func (w *walker) quotesWithin(n syntax.Node) {
	if text := w.text(n); strings.Contains(text, "<(") || strings.Contains(text, ">(") { // bash runs it there, too
		w.unknown("quotes in an expansion may hide a command", text)
	}
	syntax.Walk(n, func(inner syntax.Node) bool {
		if q, ok := inner.(*syntax.SglQuoted); ok && strings.ContainsAny(q.Value, "$`\\\"{}") {
			w.unknown("quotes in an expansion may hide a command", w.text(n))
		}
		return true
	})
}

// substitutes judges commands whose output becomes part of the
// line, or that read the output of a command of the line.
func (w *walker) substitutes(n syntax.Node, stmts []*syntax.Stmt, output bool) {
	w.report.Substituted = true
	w.find(Approve, "command substitution", w.text(n))
	outer, at := w.within, w.place
	w.within = n.End().Offset()
	w.place = Place{Input: at.Input || !output, Output: at.Output || output}
	w.apart(func() { w.stmts(stmts) })
	w.within, w.place = outer, at
}

// arithmetic judges the words within an arithmetic expression.
func (w *walker) arithmetic(x syntax.ArithmExpr) {
	switch x := x.(type) {
	case nil:
	case *syntax.Word:
		w.quotesWithin(x)
		a := w.word(x)
		w.index(a)
		if !a.exact() || strings.Trim(a.text, "0123456789") != "" {
			w.evaluates()
		}
	case *syntax.BinaryArithm:
		w.arithmetic(x.X)
		w.arithmetic(x.Y)
	case *syntax.UnaryArithm:
		w.arithmetic(x.X)
	case *syntax.ParenArithm:
		w.arithmetic(x.X)
	default:
		w.unknown("arithmetic that could not be parsed", w.text(x))
	}
}

// evaluates records that the shell evaluates a variable's value as an expression, in which an index may
// run commands. Parts of the value may come from anywhere.
func (w *walker) evaluates() {
	w.changes("evaluates variables as more than text")
	w.calculates = true
	w.setsAny()
}

// holds records a variable's new value, which may be a command if it is evaluated as an expression.
func (w *walker) holds(value arg) {
	w.index(value)
	w.holdsCommand = w.holdsCommand || value.exact() && strings.ContainsAny(value.text, "$`") || strings.Contains(value.text, "$(")
}

// index judges a word that a shell may interpret as a variable with an index.
func (w *walker) index(a arg) {
	_, index, ok := strings.Cut(a.text, "[")
	if ok && (strings.Contains(index, "$(") || strings.Contains(index, "`")) {
		w.unknown("an index that may run commands", a.text)
	}
	if ok && strings.ContainsAny(index, "=+-") {
		w.setsAny()
	}
}

func (w *walker) words(ws []*syntax.Word) []arg {
	as := make([]arg, 0, len(ws))
	for _, word := range ws {
		as = append(as, w.word(word))
	}
	return as
}

// text returns a node as written.
func (w *walker) text(n syntax.Node) string {
	from, to := n.Pos().Offset(), n.End().Offset()
	if from > to || to > uint(len(w.src)) {
		return ""
	}
	return w.src[from:to]
}

// unquote removes backslashes before a character of special.
func unquote(s, special string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte(special, s[i+1]) >= 0 {
			if i++; s[i] == '\n' {
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// unquotedPattern reports whether the shell would replace the unquoted text by file names, another
// user's home directory, or several words.
func unquotedPattern(s string) bool {
	if strings.ContainsAny(s, "*?") || strings.HasPrefix(s, "~") && s != "~" && !strings.HasPrefix(s, "~/") {
		return true
	}
	if i := strings.IndexByte(s, '['); i >= 0 && strings.IndexByte(s[i:], ']') > 0 {
		return true
	}
	i := strings.IndexByte(s, '{')
	return i >= 0 && strings.IndexByte(s[i:], '}') > 0 && (strings.Contains(s[i:], ",") || strings.Contains(s[i:], ".."))
}
