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
	text      string
	certainty certainty
	hasTilde  bool // begins with an unquoted ~
	isSingle  bool // one word, whatever the variables' values
	end       uint // offset after the word in its text; 0 if it is not in the text
}

func (a arg) isExact() bool { return a.certainty == exact }

// isOneOf reports whether the word is certainly one of words.
func (a arg) isOneOf(words ...string) bool {
	return a.certainty == exact && slices.Contains(words, a.text)
}

func (a arg) isOption() bool { return len(a.text) > 1 && a.text[0] == '-' }

// evalWord removes quotes and judges substitutions.
func (w *walker) evalWord(word *syntax.Word) arg {
	if word == nil {
		return arg{}
	}
	if len(word.Parts) == 1 {
		if lit, ok := word.Parts[0].(*syntax.Lit); ok && (!strings.ContainsAny(lit.Value, "\\*?[{~") || lit.Value == "[" ||
			lit.Value == "{}") {
			return arg{text: lit.Value, end: lit.ValueEnd.Offset()}
		}
	}
	var b wordBuilder
	for _, p := range word.Parts {
		w.addPart(&b, p)
	}
	a := arg{text: b.String(), certainty: b.certainty, hasTilde: b.hasTilde, end: word.End().Offset()}
	if hasPattern(b.unquoted.String()) {
		a.certainty = max(a.certainty, vague)
	} else {
		a.isSingle = a.certainty == vague && isSingleWord(word)
	}
	return a
}

// isSingleWord reports whether variables are only in double quotes, and none is a list.
func isSingleWord(word *syntax.Word) bool {
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

// wordBuilder builds a word. bare is its unquoted part, with \x01 for the rest.
type wordBuilder struct {
	strings.Builder
	unquoted  strings.Builder
	certainty certainty
	hasTilde  bool
}

func (b *wordBuilder) addQuoted(s string) {
	b.WriteString(s)
	b.unquoted.WriteByte(1)
}

func (w *walker) addPart(b *wordBuilder, p syntax.WordPart) {
	switch p := p.(type) {
	case *syntax.Lit:
		b.addUnquoted(p.Value)
	case *syntax.SglQuoted:
		// After $, shells differ in the meaning of a backslash, and so in where the quotes end.
		b.addQuoted(p.Value)
		if !p.Dollar {
			return
		}
		w.recordDialect(strings.Contains(p.Value, `\'`))
		if strings.Contains(p.Value, `\`) {
			b.certainty = dynamic
		}
	case *syntax.DblQuoted:
		if b.unquoted.WriteByte(1); p.Dollar {
			w.recordEffect(dialectReason) // bash translates it
		}
		for _, q := range p.Parts {
			if lit, ok := q.(*syntax.Lit); ok {
				b.addQuoted(unquote(lit.Value, "$`\"\\\n"))
			} else {
				w.addPart(b, q)
			}
		}
	case *syntax.ParamExp:
		w.addParam(b, p)
	case *syntax.CmdSubst:
		b.addQuoted(w.sourceText(p))
		b.certainty = dynamic
		w.judgeSubstitution(p, p.Stmts, true)
	case *syntax.ProcSubst:
		b.addQuoted(w.sourceText(p))
		b.certainty = dynamic
		w.judgeSubstitution(p, p.Stmts, p.Op == syntax.CmdIn)
	case *syntax.ArithmExp:
		b.addQuoted(w.sourceText(p))
		b.certainty = dynamic
		w.judgeArithmetic(p.X)
	case *syntax.ExtGlob:
		b.addQuoted(w.sourceText(p))
		b.certainty = dynamic
		w.recordEffect(dialectReason) // in bash too, depending on its options
		w.dialect.differs = true
	default:
		b.certainty = dynamic
		w.addUnknown("a word that could not be parsed", w.sourceText(p))
	}
}

// addUnquoted adds text that is in no quotes; a backslash quotes the next byte.
func (b *wordBuilder) addUnquoted(text string) {
	if b.Len() == 0 && b.unquoted.Len() == 0 && strings.HasPrefix(text, "~") {
		b.hasTilde = true
	}
	for i := 0; i < len(text); i++ {
		if text[i] != '\\' || i+1 == len(text) {
			b.WriteByte(text[i])
			b.unquoted.WriteByte(text[i])
			continue
		}
		if i++; text[i] != '\n' {
			b.addQuoted(text[i : i+1])
		}
	}
}

// isPlainParam reports whether only a variable's value is expanded.
func isPlainParam(p *syntax.ParamExp) bool {
	return p.Param != nil && p.Exp == nil && p.Repl == nil && p.Slice == nil && p.Index == nil &&
		!p.Excl && !p.Length && !p.Width && p.Names == 0
}

func (w *walker) addParam(b *wordBuilder, p *syntax.ParamExp) {
	b.addQuoted(w.sourceText(p))
	if isPlainParam(p) {
		b.certainty = max(b.certainty, vague)
		return
	}
	b.certainty = dynamic
	w.judgeQuotes(p)
	if p.Excl && p.Names == 0 {
		w.recordEvaluation() // the value may be a variable with an index
	}
	if p.Exp != nil {
		if p.Exp.Op == syntax.OtherParamOps && p.Exp.Word.Lit() == "P" {
			w.addUnknown("expands a variable as a prompt, which may run commands", w.sourceText(p))
		}
		value := w.evalWord(p.Exp.Word)
		if op := p.Exp.Op; p.Param != nil && (op == syntax.AssignUnset || op == syntax.AssignUnsetOrNull) {
			w.recordValue(value)
			w.recordSet(p.Param.Value, value)
		}
	}
	if p.Repl != nil {
		w.evalWord(p.Repl.Orig)
		w.evalWord(p.Repl.With)
	}
	w.judgeArithmetic(p.Index)
	if p.Slice != nil {
		w.judgeArithmetic(p.Slice.Offset)
		w.judgeArithmetic(p.Slice.Length)
	}
}

// judgeQuotes judges single quotes in an expansion or in arithmetic. Within
// double quotes or a here-document, they are plain text to a shell, but the
// text between them is not; in arithmetic they always are.
func (w *walker) judgeQuotes(n syntax.Node) {
	if text := w.sourceText(n); strings.Contains(text, "<(") || strings.Contains(text, ">(") { // bash runs it there, too
		w.addUnknown("quotes in an expansion may hide a command", text)
	}
	syntax.Walk(n, func(inner syntax.Node) bool {
		if q, ok := inner.(*syntax.SglQuoted); ok && strings.ContainsAny(q.Value, "$`\\\"{}") {
			w.addUnknown("quotes in an expansion may hide a command", w.sourceText(n))
		}
		return true
	})
}

// judgeSubstitution judges commands whose output becomes part of the
// line, or that read the output of a command of the line.
func (w *walker) judgeSubstitution(n syntax.Node, stmts []*syntax.Stmt, output bool) {
	w.report.Substituted = true
	w.addFinding(Approve, "command substitution", w.sourceText(n))
	outer, at := w.substitutionEnd, w.position
	w.substitutionEnd = n.End().Offset()
	w.position = Position{Input: at.Input || !output, Output: at.Output || output}
	w.judgeSubshell(func() { w.walkStmts(stmts) })
	w.substitutionEnd, w.position = outer, at
}

// judgeArithmetic judges the words within an arithmetic expression.
func (w *walker) judgeArithmetic(x syntax.ArithmExpr) {
	switch x := x.(type) {
	case nil:
	case *syntax.Word:
		w.judgeQuotes(x)
		a := w.evalWord(x)
		w.judgeIndex(a)
		if !a.isExact() || strings.Trim(a.text, "0123456789") != "" {
			w.recordEvaluation()
		}
	case *syntax.BinaryArithm:
		w.judgeArithmetic(x.X)
		w.judgeArithmetic(x.Y)
	case *syntax.UnaryArithm:
		w.judgeArithmetic(x.X)
	case *syntax.ParenArithm:
		w.judgeArithmetic(x.X)
	default:
		w.addUnknown("arithmetic that could not be parsed", w.sourceText(x))
	}
}

// recordEvaluation records that the shell evaluates a variable's value as an expression, in which an index may
// run commands. Parts of the value may come from anywhere.
func (w *walker) recordEvaluation() {
	w.recordEffect("evaluates variables as more than text")
	w.evaluatesVars = true
	w.recordUnknownSet()
}

// recordValue records a variable's new value, which may be a command if it is evaluated as an expression.
func (w *walker) recordValue(value arg) {
	w.judgeIndex(value)
	w.holdsCommand = w.holdsCommand || value.isExact() && strings.ContainsAny(value.text, "$`") || strings.Contains(value.text, "$(")
}

// judgeIndex judges a word that a shell may interpret as a variable with an index.
func (w *walker) judgeIndex(a arg) {
	_, index, ok := strings.Cut(a.text, "[")
	if ok && (strings.Contains(index, "$(") || strings.Contains(index, "`")) {
		w.addUnknown("an index that may run commands", a.text)
	}
	if ok && strings.ContainsAny(index, "=+-") {
		w.recordUnknownSet()
	}
}

func (w *walker) evalWords(ws []*syntax.Word) []arg {
	as := make([]arg, 0, len(ws))
	for _, word := range ws {
		as = append(as, w.evalWord(word))
	}
	return as
}

// sourceText returns a node as written.
func (w *walker) sourceText(n syntax.Node) string {
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

// hasPattern reports whether the shell would replace the unquoted text by file names, another
// user's home directory, or several words.
func hasPattern(s string) bool {
	if strings.ContainsAny(s, "*?") || strings.HasPrefix(s, "~") && s != "~" && !strings.HasPrefix(s, "~/") {
		return true
	}
	if i := strings.IndexByte(s, '['); i >= 0 && strings.IndexByte(s[i:], ']') > 0 {
		return true
	}
	i := strings.IndexByte(s, '{')
	return i >= 0 && strings.IndexByte(s[i:], '}') > 0 && (strings.Contains(s[i:], ",") || strings.Contains(s[i:], ".."))
}
