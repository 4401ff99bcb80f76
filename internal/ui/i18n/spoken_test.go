package i18n_test

import (
	"cmp"
	"go/ast"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// spoken is a text that reaches people, as a format, and where it is made.
type spoken struct {
	format, where string
	own           bool // a face says it itself, with T
}

// speech finds the texts that reach people.
type speech struct {
	*module
	found []spoken
	seen  map[ast.Expr]bool
	funcs map[string][]*ast.FuncDecl // "dir.name"
}

// args says which argument of a call reaches people: "name", or "dir name"
// where the name means that only there.
var args = map[string]int{
	"T": 0, "t": 0, "errors.New": 0, "message.Errorf": 0, "message.New": 0,
	"usageErrorf": 0, "inputErrorf": 0, "configErrorf": 0, "warn": 0,
	"cli flag": 2, "cli text": 2, "cli choice": 1, "cli specs": 1, "cli number": 2, "cli row": 0, "cli several": 3, "cli inWorkspace": 0,
	"usercommand Warn": 1, "skills Warn": 1, "subagent Warn": 1, "subagent denial": 0, "config addWarning": 2,
	"frontmatter addProblem": 1, "toolrun notice": 2, "mode denial": 0,
	"transport newError": 3, "undo markLost": 1, "undo recordLost": 1, "undo keep": 1, "undo keepFile": 1, "undo add": 0, "undo note": 0,
	"risk addFinding": 1, "risk addUnknown": 0, "risk reasonIf": 1, "risk addObjection": 2, "risk approveIf": 0,
	"orchestrator warn": 2, "slash row": 0, "slash note": 0, "slash add": 0,
	"term writeRemark": 1, "plain noticeLine": 0,
	"slash showText": 0, "slash usageError": 0, "slash Text": 0,
}

// formatters make a sentence from a format and its arguments.
var formatters = []string{"fmt.Sprintf", "message.Errorf", "message.New"}

// fields says which fields of a struct reach people; a number is that of a
// field that is written without its name.
var fields = map[string][]string{
	"event.Notice": {"Text"}, "event.TaskFailed": {"Reason"}, "event.TaskCanceled": {"Reason"}, "event.Retrying": {"Why"},
	"policy.Reason": {"Text"}, "Reason": {"Text"}, "uip.Option": {"Label"}, "uip.Display": {"Title", "Description"},
	"tool.Result": {"Summary"}, "exitError": {"text"}, "CommandError": {"0"}, "Command": {"Help"}, "orchestrator.Command": {"Help"}, "DeniedError": {"0"}, "BreakError": {"1"},
	"usercommand": {"help"}, "option": {"help"}, "usageLine": {"description", "1"}, "Finding": {"Item", "Detail", "Advice"}, "app.Finding": {"Item", "Detail", "Advice"}, "danger": {"0"}, "finding": {"1", "text"}, "wrapper": {"risk"}, "Warning": {"Text"},
	"event.ClaimedError": {"Holder"}, "Note": {"Text"},
}

// returns are functions whose words reach people.
var returns = []string{
	"cli providerHint", "slash undoReport", "undo describeOwners", "slash turnName", "cli deniedMessage", "app recordRepair",
	"risk ProtectedReason", "rule Offer", "rule Words", "trust String", "mode String",
	"risk problem", "jsonl holder", "tool MarkPartial",
}

func (m *module) speech() []spoken {
	s := &speech{module: m, seen: make(map[ast.Expr]bool), funcs: make(map[string][]*ast.FuncDecl)}
	for _, f := range m.files {
		for _, d := range f.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				s.funcs[f.dir+"."+fn.Name.Name] = append(s.funcs[f.dir+"."+fn.Name.Name], fn)
			}
		}
	}
	for _, f := range m.files {
		for _, d := range f.Decls {
			s.declaration(f, d)
		}
	}
	s.instead()
	s.steering()
	slices.SortFunc(s.found, func(a, b spoken) int {
		return cmp.Or(strings.Compare(a.where, b.where), strings.Compare(a.format, b.format))
	})
	return slices.Compact(s.found)
}

// steering notes what protected files are said to be.
func (s *speech) steering() {
	name := filepath.Join("..", "..", "policy", "risk", "data", "steering.txt")
	text, err := os.ReadFile(name)
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(text)) {
		if what, ok := strings.CutPrefix(strings.TrimSpace(line), "["); ok {
			s.found = append(s.found, spoken{format: strings.TrimSuffix(what, "]"), where: name})
		}
	}
}

// instead notes what tool calls that are not there are told to do instead.
func (s *speech) instead() {
	name := filepath.Join("..", "..", "tool", "dialect", "calls.txt")
	text, err := os.ReadFile(name)
	if err != nil {
		panic(err)
	}
	for line := range strings.Lines(string(text)) {
		if _, words, ok := strings.Cut(strings.TrimSpace(line), " | - | "); ok {
			s.found = append(s.found, spoken{format: words, where: name})
		}
	}
}

func (s *speech) declaration(f sourceFile, d ast.Decl) {
	fn, _ := d.(*ast.FuncDecl)
	if fn != nil && slices.Contains(returns, f.dir+" "+fn.Name.Name) {
		s.returned(f, fn, 4)
	}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			s.call(f, fn, n)
		case *ast.CompositeLit:
			s.literal(f, fn, n, "")
		}
		return true
	})
}

// lines notes what the lines of a text say, cell by cell.
func (s *speech) lines(f sourceFile, e ast.Expr) {
	for line := range strings.Lines(s.format(f, e)) {
		for cell := range strings.SplitSeq(strings.TrimSpace(line), "  ") {
			if cell = strings.TrimSpace(cell); hasWords(cell) && !isUsage(cell) {
				s.found = append(s.found, spoken{format: cell, where: s.where(f, e)})
			}
		}
	}
}

// call looks at the argument that reaches people, if there is one.
func (s *speech) call(f sourceFile, fn *ast.FuncDecl, c *ast.CallExpr) {
	name := nameOf(c.Fun)
	last := name[strings.LastIndexByte(name, '.')+1:]
	switch {
	case last == "TranslateText" && len(c.Args) == 1:
		s.lines(f, c.Args[0])
	case name == "display.TextCells":
		for _, a := range c.Args {
			s.speaks(f, fn, a, false, 2)
		}
	}
	for _, key := range []string{f.dir + " " + last, name, last} {
		if i, ok := args[key]; ok {
			if i < len(c.Args) {
				from := len(s.found)
				s.speaks(f, fn, c.Args[i], isFormatting(key, last), 4)
				for n := range s.found[from:] {
					s.found[from+n].own = last == "T" || last == "t"
				}
			}
			return
		}
	}
}

// isFormatting reports whether a function takes a format.
func isFormatting(key, name string) bool {
	return slices.Contains([]string{"T", "t", "Errorf", "usageErrorf", "inputErrorf", "configErrorf", "showText", "newError", "denial", "addProblem", "usageError"}, name) ||
		slices.Contains([]string{"message.New", "usercommand Warn", "skills Warn"}, key)
}

// isUsage reports whether a cell is what people type.
func isUsage(cell string) bool {
	return strings.HasPrefix(cell, "!") || strings.HasPrefix(cell, "/") || strings.HasPrefix(cell, "coder ")
}

// literal looks at the fields that reach people. A literal without a type has
// that of the elements it stands among.
func (s *speech) literal(f sourceFile, fn *ast.FuncDecl, l *ast.CompositeLit, element string) {
	name := cmp.Or(nameOf(l.Type), element)
	if inner, ok := strings.CutPrefix(name, "[]"); ok {
		element = inner
	} else if m, ok := l.Type.(*ast.MapType); ok {
		element = nameOf(m.Value)
	}
	for i, e := range l.Elts {
		value, key := e, string(rune('0'+i%10))
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			value, key = kv.Value, nameOf(kv.Key)
		}
		if inner, ok := value.(*ast.CompositeLit); ok && inner.Type == nil {
			s.literal(f, fn, inner, element)
			continue
		}
		if key == "Words" && nameOf(value) == "true" { // of a cell
			s.speaks(f, fn, l.Elts[0].(*ast.KeyValueExpr).Value, false, 2)
		}
		if slices.Contains(fields[name], key) {
			s.speaks(f, fn, value, false, 4)
		}
	}
}

// speaks notes what e says, and what those say that it is made of.
func (s *speech) speaks(f sourceFile, fn *ast.FuncDecl, e ast.Expr, isFormat bool, depth int) {
	if depth == 0 || s.seen[e] {
		return
	}
	s.seen[e] = true
	if text := s.pieces(f, e, isFormat, 8); hasWords(text) {
		if !isFormat {
			text = s.format(f, e)
		}
		s.found = append(s.found, spoken{format: text, where: s.where(f, e)})
	}
	switch e := e.(type) {
	case *ast.ParenExpr:
		s.speaks(f, fn, e.X, isFormat, depth)
	case *ast.BinaryExpr:
		s.part(f, fn, e.X, depth)
		s.part(f, fn, e.Y, depth)
	case *ast.Ident:
		s.variable(f, fn, e.Name, depth)
	case *ast.CallExpr:
		s.called(f, fn, e, depth)
	}
}

// part follows what stands beside other words.
func (s *speech) part(f sourceFile, fn *ast.FuncDecl, e ast.Expr, depth int) {
	switch e.(type) {
	case *ast.BinaryExpr, *ast.Ident, *ast.CallExpr:
		s.seen[e] = s.seen[e] || s.format(f, e) != "" && !isCall(e) // said with the rest
		switch x := e.(type) {
		case *ast.BinaryExpr:
			s.part(f, fn, x.X, depth)
			s.part(f, fn, x.Y, depth)
		case *ast.Ident:
			s.variable(f, fn, x.Name, depth-1)
		case *ast.CallExpr:
			s.called(f, fn, x, depth-1)
		}
	}
}

func isCall(e ast.Expr) bool { _, ok := e.(*ast.CallExpr); return ok }

// variable follows what is put into a variable of a function.
func (s *speech) variable(f sourceFile, fn *ast.FuncDecl, name string, depth int) {
	if fn == nil || depth <= 0 {
		return
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		a, ok := n.(*ast.AssignStmt)
		if !ok || len(a.Lhs) != len(a.Rhs) {
			return true
		}
		for i, l := range a.Lhs {
			if nameOf(l) != name {
				continue
			}
			if a.Tok == token.ADD_ASSIGN {
				s.part(f, fn, &ast.BinaryExpr{X: l, OpPos: a.TokPos, Op: token.ADD, Y: a.Rhs[i]}, depth-1)
				if text := s.pieces(f, a.Rhs[i], false, 8); hasWords(text) {
					s.found = append(s.found, spoken{format: "%s" + text, where: s.where(f, a.Rhs[i])})
				}
				continue
			}
			s.speaks(f, fn, a.Rhs[i], false, depth-1)
		}
		return true
	})
}

// called follows what a function of the same package returns, and what is put
// into a format.
func (s *speech) called(f sourceFile, fn *ast.FuncDecl, c *ast.CallExpr, depth int) {
	name := nameOf(c.Fun)
	if slices.Contains(formatters, name) {
		for _, a := range c.Args[1:] {
			s.part(f, fn, a, depth)
		}
		return
	}
	last := name[strings.LastIndexByte(name, '.')+1:]
	if strings.Contains(name, ".") && !isMethod(c) {
		return
	}
	for _, callee := range s.funcs[f.dir+"."+last] {
		s.returned(f, callee, depth-1)
	}
}

// isMethod reports whether a call may be of a method rather than of another
// package's function.
func isMethod(c *ast.CallExpr) bool {
	sel, ok := c.Fun.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	x, ok := sel.X.(*ast.Ident)
	return !ok || len(x.Name) <= 2
}

func (s *speech) returned(f sourceFile, fn *ast.FuncDecl, depth int) {
	if fn.Type.Results == nil || len(fn.Type.Results.List) == 0 || nameOf(fn.Type.Results.List[0].Type) != "string" {
		return
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			return false
		case *ast.ReturnStmt:
			if len(n.Results) > 0 {
				s.speaks(s.fileOf(fn, f), fn, n.Results[0], false, depth)
			}
		}
		return true
	})
}

// fileOf is the file of a function of the same package as f.
func (s *speech) fileOf(fn *ast.FuncDecl, f sourceFile) sourceFile {
	for _, other := range s.files {
		if other.dir == f.dir && other.FileStart <= fn.Pos() && fn.Pos() < other.FileEnd {
			return other
		}
	}
	return f
}
