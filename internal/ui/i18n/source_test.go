package i18n_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"unicode"
)

// A source file of the module, parsed.
type sourceFile struct {
	*ast.File
	dir  string // its folder's own name
	path string
}

// module is the program's source, without tests and what only tests use.
type module struct {
	fset  *token.FileSet
	files []sourceFile
	named map[string]ast.Expr // "package.name" of a constant or variable to its value
}

var source = sync.OnceValues(func() (*module, error) {
	m := &module{fset: token.NewFileSet(), named: make(map[string]ast.Expr)}
	for _, top := range []string{"internal", "fleet", filepath.Join("cmd", "coder")} {
		if err := filepath.WalkDir(filepath.Join("..", "..", "..", top), m.visit); err != nil {
			return nil, err
		}
	}
	return m, nil
})

func readSource(t *testing.T) *module {
	t.Helper()
	m, err := source()
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *module) visit(path string, d fs.DirEntry, err error) error {
	switch {
	case err != nil:
		return err
	case d.IsDir() && (d.Name() == "testdata" || d.Name() == "arch"):
		return filepath.SkipDir
	case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
		return nil
	}
	f, err := parser.ParseFile(m.fset, path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	short := strings.TrimPrefix(filepath.ToSlash(path), "../../../")
	m.files = append(m.files, sourceFile{File: f, dir: filepath.Base(filepath.Dir(short)), path: short})
	for _, decl := range f.Decls {
		if g, ok := decl.(*ast.GenDecl); ok && (g.Tok == token.CONST || g.Tok == token.VAR) {
			m.note(f.Name.Name, g)
		}
	}
	return nil
}

// note remembers what the names of a declaration stand for.
func (m *module) note(pkg string, g *ast.GenDecl) {
	for _, spec := range g.Specs {
		v := spec.(*ast.ValueSpec)
		for i, name := range v.Names {
			if i < len(v.Values) {
				m.named[pkg+"."+name.Name] = v.Values[i]
			}
		}
	}
}

// where is the place of a node, for people.
func (m *module) where(f sourceFile, n ast.Node) string {
	return f.path + ":" + strconv.Itoa(m.fset.Position(n.Pos()).Line)
}

// format is what e makes, as a format: what is written there stays, what is
// only known when the program runs is %s. It is "" if there is no word in it.
func (m *module) format(f sourceFile, e ast.Expr) string {
	text := m.pieces(f, e, false, 8)
	if !hasWords(text) {
		return ""
	}
	if !strings.Contains(strings.ReplaceAll(text, "%%", ""), "%") {
		return strings.ReplaceAll(text, "%%", "%")
	}
	return text
}

// pieces is e as a format. Where e already is one, its verbs stay.
func (m *module) pieces(f sourceFile, e ast.Expr, isFormat bool, depth int) string {
	if depth == 0 {
		return "%s"
	}
	switch e := e.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(e.Value)
		switch {
		case e.Kind != token.STRING || err != nil:
			return "%s"
		case isFormat:
			return text
		}
		return strings.ReplaceAll(text, "%", "%%")
	case *ast.ParenExpr:
		return m.pieces(f, e.X, isFormat, depth)
	case *ast.BinaryExpr:
		return m.pieces(f, e.X, isFormat, depth) + m.pieces(f, e.Y, isFormat, depth)
	case *ast.Ident:
		if v, ok := m.named[f.Name.Name+"."+e.Name]; ok {
			return m.pieces(f, v, isFormat, depth-1)
		}
	case *ast.SelectorExpr:
		if v, ok := m.named[nameOf(e)]; ok {
			return m.pieces(f, v, isFormat, depth-1)
		}
	case *ast.CallExpr:
		switch nameOf(e.Fun) {
		case "fmt.Sprintf", "message.Errorf", "message.New":
			return m.pieces(f, e.Args[0], true, depth-1)
		case "display.Plural":
			return m.pieces(f, e.Args[2], isFormat, depth-1)
		case "errors.New", "strings.TrimSpace", "strings.ToLower", "strings.ToUpper":
			return m.pieces(f, e.Args[0], isFormat, depth-1)
		}
	}
	return "%s"
}

// nameOf is a name as it is written: f, or pkg.f, or x.y.f without what is
// not a name.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return nameOf(e.X) + "." + e.Sel.Name
	case *ast.StarExpr:
		return nameOf(e.X)
	case *ast.ParenExpr:
		return nameOf(e.X)
	case *ast.ArrayType:
		return "[]" + nameOf(e.Elt)
	case *ast.IndexExpr:
		return nameOf(e.X)
	}
	return ""
}

var verbs = regexp.MustCompile(`%[-+ #0]*\d*(?:\.(?:\d+|\*))?(?:\[\d+\])?[a-zA-Z%]`)

// hasWords reports whether a format says something of its own.
func hasWords(format string) bool {
	return strings.ContainsFunc(verbs.ReplaceAllString(format, ""), unicode.IsLetter)
}

// literals are all texts and formats that the source makes, to tell a stale
// entry by.
func (m *module) literals() map[string]bool {
	all := make(map[string]bool)
	for _, f := range m.files {
		ast.Inspect(f.File, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.BasicLit:
				if text, err := strconv.Unquote(n.Value); err == nil {
					addParts(all, text)
				}
			case *ast.BinaryExpr:
				addParts(all, m.format(f, n))
			}
			return true
		})
	}
	return all
}

// addParts adds a text, its lines and the cells of them: that is how it is
// looked up.
func addParts(all map[string]bool, text string) {
	all[text] = true
	for line := range strings.Lines(text) {
		line = strings.Trim(line, " \t\n")
		all[line], all[strings.TrimRight(line, ";:, ")] = true, true
		for cell := range strings.SplitSeq(line, "  ") {
			all[strings.TrimSpace(cell)] = true
		}
	}
}

func isFace(dir string) bool {
	return slices.Contains([]string{"browser", "cli", "repl", "term", "plain"}, dir)
}
